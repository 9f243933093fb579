package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Source is a source of estimates of tasks' runtimes.
type Source string

// The sources, in the order in which they are consulted.
const (
	FromProfile Source = "profile"  // the profiles in the request
	Measured    Source = "measured" // the owner's earlier runs
	FromFile    Source = "file"     // the workflow itself
	ByDefault   Source = "default"  // the request's default for all other tasks
	Guessed     Source = "assumed"  // only for a plan that its run revises: the run measures such tasks first
)

// Estimates describes the estimates from one source.
type Estimates struct {
	Source Source         `json:"source"`
	Count  int            `json:"count"`            // tasks
	Runs   []corral.RunID `json:"runs,omitempty"`   // only for Measured
	Each   corral.Seconds `json:"each_s,omitempty"` // only for ByDefault and Guessed: the runtime of each task
	Kinds  []string       `json:"kinds,omitempty"`  // only for Guessed: the kinds of the tasks, sorted
}

// String describes e as a part of a list, such as "96 measured here (runs 3, 5)".
func (e Estimates) String() string {
	switch e.Source {
	case FromProfile:
		return fmt.Sprintf("%d from the profile", e.Count)
	case Measured:
		return fmt.Sprintf("%d measured here (%s)", e.Count, RunList(e.Runs))
	case ByDefault:
		return fmt.Sprintf("%d of %s by default", e.Count, e.Each)
	case Guessed:
		return fmt.Sprintf("%d assumed to be %s until the run has measured the kind", e.Count, e.Each)
	}
	return fmt.Sprintf("%d from the file", e.Count)
}

// Sources describes the sources of a plan's estimates in one phrase.
func Sources(all []Estimates) string {
	parts := make([]string, len(all))
	for i, e := range all {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

// RunList returns a phrase such as "run 3" or "runs 3, 5".
func RunList(runs []corral.RunID) string {
	all := make([]string, len(runs))
	for i, id := range runs {
		all[i] = fmt.Sprint(id)
	}
	word := "runs "
	if len(all) == 1 {
		word = "run "
	}
	return word + strings.Join(all, ", ")
}

// Guesses returns the kinds of tasks whose runtimes are only assumed.
func Guesses(all []Estimates) map[string]bool {
	kinds := map[string]bool{}
	for _, e := range all {
		for _, kind := range e.Kinds {
			kinds[kind] = true
		}
	}
	return kinds
}

// Errors maps kinds of tasks to the measured errors of their estimates.
type Errors map[string]KindErrors

// KindErrors is the distribution of runtime ÷ estimate of a kind's tasks.
type KindErrors struct {
	Runtimes int64 `json:"runtimes"` // measured
	// The minimum, the maximum, and quantiles at equal distances between them. A single element is a constant.
	Ratios []float64 `json:"ratios"`
}

// LeastRuntimes is the minimum number of measured runtimes from which the errors of a kind are learned.
const LeastRuntimes = 20

// NewKindErrors returns the distribution of equally likely ratios, which must be sorted.
func NewKindErrors(runtimes int64, ratios []float64) KindErrors {
	e := KindErrors{Runtimes: runtimes, Ratios: make([]float64, parts+1)}
	for i := range e.Ratios {
		e.Ratios[i] = math.Round(1e4*interpolated(ratios, float64(i)/parts)) / 1e4
	}
	if e.Ratios[0] == e.Ratios[parts] {
		e.Ratios = e.Ratios[:1]
	}
	return e
}

// Factor returns the ratio of runtime to estimate that a share of the tasks of a kind do not exceed; for a kind without
// measured errors it returns 1.
func (e Errors) Factor(kind string, share float64) float64 {
	if known, ok := e[kind]; ok {
		return interpolated(known.Ratios, share)
	}
	return 1
}

// interpolated returns the quantile of sorted values, which must not be empty.
func interpolated(values []float64, share float64) float64 {
	at := min(1, max(0, share)) * float64(len(values)-1)
	k := int(at)
	if k+1 >= len(values) {
		return values[len(values)-1]
	}
	return values[k] + (values[k+1]-values[k])*(at-float64(k))
}

// Law describes the errors of estimates: the measured ones, and the law of the other kinds in the syntax of --error,
// where 0 means no error or no other kinds.
func (e Errors) Law(rest string) string {
	if len(e) == 0 {
		return rest
	}
	var runtimes int64
	for _, k := range e {
		runtimes += k.Runtimes
	}
	kinds := "kinds"
	if len(e) == 1 {
		kinds = "kind"
	}
	text := fmt.Sprintf("learned from %d runtimes of %d %s", runtimes, len(e), kinds)
	if rest != "0" {
		text += "; " + rest + " for the rest"
	}
	return text
}

// check returns an error for a distribution that no measurement yields.
func (e Errors) check() error {
	for kind, k := range e {
		n := len(k.Ratios)
		if n == 0 || !slices.IsSorted(k.Ratios) || !(k.Ratios[0] >= 0) || math.IsInf(k.Ratios[n-1], 1) {
			return fmt.Errorf("errors of %.80q: the ratios are missing, negative or not in ascending order", kind)
		}
	}
	return nil
}
