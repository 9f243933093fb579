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

// A Spread says how runtimes differ from their estimates: by which law, and by how much. The zero Spread is no
// difference.
type Spread struct {
	Law  string  // uniform, lognormal, transformation or host; empty: none
	Size float64 // of uniform the largest share, of the others the standard deviation of the logarithm
}

var laws = []string{"uniform", "lognormal", "transformation", "host"}

// ParseSpread reads what --error takes: 0, uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2; see Uniform,
// Lognormal, ByKind and ByHost. A number may be a percentage. Errors are of kind Invalid.
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
	most := 3.0 // beyond it nearly every task takes no time, and a few take all
	if law == "uniform" {
		most = 1
	}
	if !slices.Contains(laws, law) || err != nil || math.IsNaN(x) || x < 0 || x > most {
		return Spread{}, corral.Errorf(corral.Invalid, "%.40q is none of 0, uniform:SHARE with a share of at most 1, "+
			"lognormal:S, transformation:S and host:S with S of at most 3", text)
	}
	return Spread{law, x}, nil
}

// String writes s as ParseSpread reads it.
func (s Spread) String() string {
	if s.Law == "" {
		return "0"
	}
	return s.Law + ":" + strconv.FormatFloat(s.Size, 'g', -1, 64)
}

// Of has a scenario's runtimes differ from their estimates. kind returns the transformation of a task.
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

// Factor is by how much the runtime of a task of an ensemble differs from its estimate, where hosts are alike. Tasks
// are told apart by their workflow's name and their IDs.
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

// QuantileWaits draws each pilot's wait from a distribution that is given by its quantiles.
func QuantileWaits(site string, of plan.Waits, seed uint64) func(plan.Shape, int) time.Duration {
	return func(shape plan.Shape, n int) time.Duration {
		return of(shape, chance.Draw(seed, "wait", site, chance.Number(n)))
	}
}
