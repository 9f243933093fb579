package rehearsal

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/planner/spss"
)

// The algorithms for a choice.
const (
	SPDS   = "spds"
	DPDS   = "dpds"
	WADPDS = "wa-dpds"
	SPSS   = "spss"
)

// A Choice is an algorithm with its parameters: everything that must be stored to make the same policy again.
type Choice struct {
	Algorithm string         `json:"algorithm"`
	Machines  int            `json:"machines,omitempty"` // initial number of machines; spss determines it from its plan
	Alpha     ensemble.Share `json:"alpha,omitempty"`    // weight, for spss
	Delay     corral.Seconds `json:"delay_s,omitempty"`  // planned delay of machines, for spss
	Reserve   ensemble.Share `json:"reserve,omitempty"`  // share by which planned task times are extended, for spss
	Shared    bool           `json:"shared,omitempty"`   // tasks are not bound to their planned machine
}

// Default returns the default parameters of an algorithm for a problem.
func Default(algorithm string, p Problem) Choice {
	if algorithm == SPSS {
		return Choice{Algorithm: SPSS, Shared: p.Shared || p.Spread.Law != "",
			Alpha: spss.Default(p.Budget, p.Deadline, p.Terms).Alpha,
			Delay: corral.Seconds(p.Delay)}
	}
	return Choice{Algorithm: algorithm, Machines: p.most(p.Terms.Machines(p.Budget, p.Deadline))}
}

// most limits a number of machines to the maximum.
func (p Problem) most(n int) int {
	if p.Machines.Most > 0 {
		return min(n, p.Machines.Most)
	}
	return n
}

// String returns the algorithm with its parameters.
func (c Choice) String() string {
	if c.Algorithm == SPSS {
		name := "spss"
		if c.Shared {
			name = "spss, shared,"
		}
		return fmt.Sprintf("%s alpha=%s delay=%s reserve=%s", name, c.Alpha, c.Delay, c.Reserve)
	}
	return fmt.Sprintf("%s machines=%d", c.Algorithm, c.Machines)
}

// Policy returns the policy of the choice. It is deterministic for a problem.
func (c Choice) Policy(p Problem) ensemble.Strategy {
	if c.Algorithm == SPSS {
		r := spss.Default(p.Budget, p.Deadline, p.Terms)
		r.Alpha, r.Delay, r.Reserve = c.Alpha, time.Duration(c.Delay), c.Reserve
		made := r.Make(p.Ensemble)
		if p.Explain {
			r.Explain(p.Ensemble, made)
		}
		g := spss.NewGuard(r, p.Ensemble, made)
		g.Interval, g.Leaving = cmp.Or(p.Interval, g.Interval), p.Leaving
		if c.Shared {
			return g.Shared()
		}
		return g
	}
	r := dpds.Default(p.Budget, p.Deadline, p.Terms)
	r.Machines, r.Fixed, r.Aware = c.Machines, c.Algorithm == SPDS, c.Algorithm == WADPDS
	r.Interval, r.Leaving = cmp.Or(p.Interval, r.Interval), cmp.Or(p.Leaving, r.Leaving)
	r.Ends, r.Once = p.Machines.Ends > 0, p.Once
	return r
}
