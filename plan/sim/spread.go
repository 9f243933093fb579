package sim

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/chance"
)

// A Spread is the distribution of the differences between runtimes and their estimates. The zero Spread means no
// difference.
type Spread struct {
	Law  string  // uniform, lognormal, transformation or host; empty: none
	Size float64 // the maximum relative difference for uniform, otherwise the standard deviation of the logarithm
}

var laws = []string{"uniform", "lognormal", "transformation", "host"}

// ParseSpread parses the argument of --error: 0, uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2; see
// Uniform, Lognormal, ByKind and ByHost. A number may be a percentage. Errors are of kind Invalid.
func ParseSpread(text string) (Spread, error) {
	if text == "0" {
		return Spread{}, nil
	}
	law, size, _ := strings.Cut(text, ":")
	digits, percent := strings.CutSuffix(size, "%")
	x, err := strconv.ParseFloat(digits, 64)
	if percent {
		x /= 100
	}
	most := 3.0 // at larger values nearly all tasks take no time, and a few take nearly all the time
	if law == "uniform" {
		most = 1
	}
	if !slices.Contains(laws, law) || err != nil || math.IsNaN(x) || x < 0 || x > most {
		return Spread{}, corral.Errorf(corral.Invalid, "%.40q must be 0, uniform:SHARE with a share of at most 1, or "+
			"lognormal:S, transformation:S or host:S with S of at most 3", text)
	}
	return Spread{law, x}, nil
}

// ParseSpreads parses a list of arguments of ParseSpread, separated by commas, such as 0,uniform:10%.
func ParseSpreads(text string) (all []Spread, err error) {
	for _, part := range strings.Split(text, ",") {
		s, err := ParseSpread(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// String formats s in the syntax of ParseSpread.
func (s Spread) String() string {
	if s.Law == "" {
		return "0"
	}
	return s.Law + ":" + strconv.FormatFloat(s.Size, 'g', -1, 64)
}

// Of makes a scenario's runtimes follow the distribution. kind returns the transformation of a task.
func (s Spread) Of(sc *Scenario, kind func(task int) string, seed uint64) {
	switch s.Law {
	case "uniform":
		sc.Runtime = Runtimes(sc.Work, Uniform(sc.Work, s.Size, seed))
	case "lognormal":
		sc.Runtime = Runtimes(sc.Work, Lognormal(sc.Work, s.Size, seed))
	case "transformation":
		sc.Runtime = Runtimes(sc.Work, ByKind(kind, s.Size, seed))
	case "host":
		sc.Speed = ByHost(s.Size, seed)
	}
}

// Factor returns the ratio between the runtime and the estimate of a task in an ensemble, if all hosts are alike. A
// task is identified by its workflow's name and its ID.
func (s Spread) Factor(seed uint64, workflow, id, kind string) float64 {
	switch s.Law {
	case "uniform":
		return 1 + s.Size*(2*chance.Draw(seed, "uniform", workflow, id)-1)
	case "lognormal":
		return chance.Lognormal(s.Size, seed, "lognormal", workflow, id)
	case "transformation":
		return chance.Lognormal(s.Size, seed, "kind", kind)
	}
	return 1
}

// QuantileWaits draws each pilot's wait from the distribution that has the given quantiles.
func QuantileWaits(site string, of plan.Waits, seed uint64) func(plan.Shape, int) time.Duration {
	return func(shape plan.Shape, n int) time.Duration {
		return of(shape, chance.Draw(seed, "wait", site, chance.Number(n)))
	}
}
