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

// The algorithms of a choice.
const (
	SPDS   = "spds"
	DPDS   = "dpds"
	WADPDS = "wa-dpds"
	SPSS   = "spss"
)

// A Choice is an algorithm with its parameters: all that is to be kept of a policy so that it can be made again.
type Choice struct {
	Algorithm string         `json:"algorithm"`
	Machines  int            `json:"machines,omitempty"` // at first; of spss the plan says
	Alpha     ensemble.Share `json:"alpha,omitempty"`    // of spss: its weight,
	Delay     corral.Seconds `json:"delay_s,omitempty"`  // the delay that machines are planned with,
	Reserve   ensemble.Share `json:"reserve,omitempty"`  // and by how much longer tasks are;
	Shared    bool           `json:"shared,omitempty"`   // no machine keeps its planned tasks
}

// Default returns what an algorithm is run with by default for a problem.
func Default(algorithm string, p Problem) Choice {
	if algorithm == SPSS {
		return Choice{Algorithm: SPSS, Shared: p.Shared || p.Spread.Law != "",
			Alpha: spss.Default(p.Budget, p.Deadline, p.Terms).Alpha,
			Delay: corral.Seconds(p.Delay)}
	}
	return Choice{Algorithm: algorithm, Machines: p.most(p.Terms.Machines(p.Budget, p.Deadline))}
}

// most is a number of machines, or the most that there may be.
func (p Problem) most(n int) int {
	if p.Machines.Most > 0 {
		return min(n, p.Machines.Most)
	}
	return n
}

// String names the choice with its parameters.
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

// Policy returns what decides. The same choice decides alike for the same problem.
func (c Choice) Policy(p Problem) ensemble.Policy {
	if c.Algorithm == SPSS {
		r := spss.Default(p.Budget, p.Deadline, p.Terms)
		r.Alpha, r.Delay, r.Reserve = c.Alpha, time.Duration(c.Delay), c.Reserve
		g := spss.NewGuard(r, p.Ensemble, r.Make(p.Ensemble))
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
