package cli

// The jobs of other users in the queue of a site, taken from a trace or a model, for `corral simulate`.

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

const (
	maxLoad      = 2         // maximum of --background lublin; with a higher load, queues only grow
	maxMachine   = 1_000_000 // maximum of --cpus
	modelledJobs = 10_000    // number of jobs drawn from the model: three months at its own load
)

// readBackground reads the jobs among which pilots wait, and prints a summary; it returns nil if the flags name none.
func (v planVerbs) readBackground(c *cli.Context, document *plan.Plan) (*montecarlo.Background, error) {
	what := c.String("background")
	if what == "" {
		for _, flag := range []string{"queue-policy", "cpus"} {
			if c.IsSet(flag) {
				return nil, corral.ErrorAt(corral.Invalid, "--"+flag, "requires --background")
			}
		}
		return nil, nil
	}
	m := queue.Machine{Policy: queue.EASY, Processors: c.Int("cpus")}
	if policy := c.String("queue-policy"); policy != "" {
		m.Policy = queue.Discipline(policy)
	}
	switch {
	case c.IsSet("waits"):
		return nil, corral.ErrorAt(corral.Invalid, "--waits", "cannot be used with --background, which simulates the "+
			"queue")
	case !m.Policy.Valid():
		return nil, corral.ErrorAt(corral.Invalid, "--queue-policy", "%.40q is none of fcfs, easy and conservative",
			m.Policy)
	case c.IsSet("cpus") && (m.Processors < 1 || m.Processors > maxMachine):
		return nil, corral.ErrorAt(corral.Invalid, "--cpus", "%d is not between 1 and %d", m.Processors, maxMachine)
	}
	trace, err := backgroundOf(c, what, &m)
	if err != nil {
		return nil, err
	}
	held := queue.Replay(m, trace.Jobs)
	held = slices.DeleteFunc(held, func(h queue.Held) bool { return h.Start < 0 })
	if len(held) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, what,
			"each of its %d jobs requests more than the %d cpus of the machine", len(trace.Jobs), m.Processors)
	}
	for i, q := range document.Pilots {
		if n := q.Hosts * q.CPUs; n > m.Processors {
			return nil, corral.ErrorAt(corral.Invalid, "--cpus", "pilot %d asks for %d cpus, and the machine has %d", i,
				n, m.Processors)
		}
	}
	v.tellBackground(m, trace, held)
	return montecarlo.NewBackground(m, trace.Jobs), nil
}

// backgroundOf reads or draws jobs, and completes the description of the machine on which they run.
func backgroundOf(c *cli.Context, what string, m *queue.Machine) (*workload.Trace, error) {
	if text, ok := strings.CutPrefix(what, "lublin:"); ok {
		digits, percent := strings.CutSuffix(text, "%")
		load, err := strconv.ParseFloat(digits, 64)
		if percent {
			load /= 100
		}
		switch {
		case err != nil || math.IsNaN(load) || load <= 0 || load > maxLoad:
			return nil, corral.ErrorAt(corral.Invalid, "--background",
				"%.40q is not a load above 0, of at most %d, such as 0.7", text, maxLoad)
		case m.Processors == 0:
			return nil, corral.ErrorAt(corral.Invalid, "--cpus",
				"is missing: name the number of cpus to draw jobs for")
		}
		return &workload.Trace{Jobs: workload.Draw(modelledJobs, m.Processors, load, c.Uint64("seed"))}, nil
	}
	f, err := input.Open(what)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, what, "%w", errors.Unwrap(err))
	}
	defer f.Close()
	trace, err := workload.ReadJobs(c.Context, f, what)
	if err != nil {
		return nil, err
	}
	if m.Processors == 0 {
		n, ok := trace.Header.Machine()
		if !ok || n > maxMachine {
			return nil, corral.ErrorAt(corral.Invalid, "--cpus",
				"is missing, and %s does not name the number of cpus of its machine", what)
		}
		m.Processors = n
	}
	return trace, nil
}

// tellBackground prints a summary of the jobs among which pilots wait, and of the jobs that were omitted.
func (v planVerbs) tellBackground(m queue.Machine, trace *workload.Trace, held []queue.Held) {
	if trace.LeftOut > 0 {
		v.say("jobs left out because their processors or runtimes are unknown: %d", trace.LeftOut)
	}
	if refused := len(trace.Jobs) - len(held); refused > 0 {
		v.say("jobs left out because they request more than the machine has: %d", refused)
	}
	if trace.Exact > 0 {
		v.say("jobs whose request is their runtime, because the trace has no other: %d", trace.Exact)
	}
	var mean float64 // the sum of many long waits overflows a Duration
	jobs := make([]queue.Job, len(held))
	for i, h := range held {
		mean += float64(h.Wait()) / float64(len(held))
		jobs[i] = h.Job
	}
	v.say("pilots wait among %d jobs on %d cpus, by %s: a load of %.2f, a mean wait of %s without the pilots",
		len(held), m.Processors, m.Policy, queue.Load(jobs, m.Processors),
		brief(corral.Seconds(time.Duration(mean).Round(time.Second))))
}
