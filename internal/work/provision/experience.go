package provision

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// Experience holds estimates for tasks in addition to those in their workflow. The runtime of a task is taken from the
// first of these sources that contains it: Given, Earlier, the workflow, Fallback, Guess.
type Experience struct {
	Given    *profile.Profile // the requested profile, or nil
	Earlier  *profile.Profile // the profile of earlier runs, or nil
	Runs     []corral.RunID   // the earlier runs
	Fallback time.Duration    // for every task without another estimate; 0: none
	Guess    time.Duration    // like Fallback, but only until the run has measured tasks of the kind; 0: none

	// Speeds are the speeds of the hosts in the profiles; estimates are for their reference host. If Speeds is nil, all
	// hosts are equally fast.
	Speeds profile.Speeds
	// Rest reports whether a task, by its index, is still to be done: only these tasks need an estimate, and count in
	// the Basis. nil: all are.
	Rest func(task int) bool
}

// A Basis describes the estimates for the tasks of a workflow.
type Basis struct {
	Estimates []plan.Estimates // in the order in which the sources are consulted
	Errors    plan.Errors      // of kinds with enough measured runtimes
	Whole     bool             // Errors contains every kind
	Remarks   []string
}

// A guess is a source's estimate for a task.
type guess struct {
	runtime   time.Duration // in whole milliseconds
	known     bool          // whether the runtime is known
	memoryMiB int           // upper limit; 0: unknown
}

// A source provides estimates.
type source struct {
	plan.Estimates // Count and, for assumed ones, Kinds refer to the tasks whose runtimes were taken from this source

	guesses   []guess
	kinds     map[string]bool    // kinds of tasks whose runtimes were taken from this source
	estimator *profile.Estimator // nil: the errors of the estimates are not known
}

func newSource(of plan.Estimates, tasks int, estimate func(task int) guess) *source {
	s := &source{Estimates: of, guesses: make([]guess, tasks), kinds: map[string]bool{}}
	for i := range s.guesses {
		s.guesses[i] = estimate(i)
		s.guesses[i].runtime = s.guesses[i].runtime.Round(time.Millisecond)
	}
	return s
}

// expectation holds the estimates for the tasks of one workflow.
type expectation struct {
	tasks   []workflow.Task
	kinds   []string  // of the tasks
	sources []*source // in the order in which they are consulted
	remarks []string
	rest    func(task int) bool
}

// newExpectation creates the sources in the order of their precedence. It fails if Given has no runtime for any of the
// tasks: a plan that ignored the requested profile would be a surprise.
func newExpectation(w *workflow.Workflow, x Experience) (*expectation, error) {
	o := &expectation{tasks: w.Tasks, kinds: make([]string, len(w.Tasks)), rest: x.Rest}
	if o.rest == nil {
		o.rest = func(int) bool { return true }
	}
	known := profile.Tasks(w)
	for i := range known {
		o.kinds[i] = known[i].Transformation
	}
	if x.Given != nil {
		given := learned(plan.Estimates{Source: plan.FromProfile}, w, known, x.Given, x.Speeds)
		if !slices.ContainsFunc(given.guesses, func(g guess) bool { return g.known }) {
			return nil, corral.ErrorAt(corral.Invalid, "profiles", "no kind of task of the workflow has a runtime "+
				"there; %s is one of its kinds", o.kinds[0])
		}
		o.sources = append(o.sources, given)
	}
	file := newSource(plan.Estimates{Source: plan.FromFile}, len(w.Tasks), func(i int) guess {
		estimate, ok := w.Tasks[i].Estimated()
		return guess{estimate, ok, w.Tasks[i].MemoryMiB}
	})
	if x.Earlier != nil {
		earlier := learned(plan.Estimates{Source: plan.Measured, Runs: x.Runs}, w, known, x.Earlier, x.Speeds)
		o.compare(file, earlier)
		o.sources = append(o.sources, earlier)
	}
	o.sources = append(o.sources, file)
	for _, e := range []plan.Estimates{{Source: plan.ByDefault, Each: corral.Seconds(x.Fallback)},
		{Source: plan.Guessed, Each: corral.Seconds(x.Guess)}} {
		if e.Each > 0 {
			o.sources = append(o.sources, newSource(e, len(w.Tasks), func(int) guess {
				return guess{time.Duration(e.Each), true, 0}
			}))
		}
	}
	return o, nil
}

// learned returns a source whose estimates are based on a profile: the runtime that the model of a task's class
// predicts for the size of its input, and the maximum memory used by a task of that class.
func learned(of plan.Estimates, w *workflow.Workflow, tasks []profile.Subject, p *profile.Profile,
	speeds profile.Speeds) *source {
	estimator := profile.NewEstimator(p, speeds)
	s := newSource(of, len(tasks), func(i int) guess {
		size, known := profile.InputBytes(w, i)
		if !known {
			size = -1
		}
		t := tasks[i]
		t.Host = "" // the host on which it will run has not been chosen yet
		x, ok := estimator.Estimate(t, size)
		return guess{x.Point, ok, int(min(math.MaxInt32, (x.MemoryBytes+1<<20-1)>>20))}
	})
	s.estimator = estimator
	return s
}

// noteworthy is the minimum factor by which earlier runs must differ from the workflow's estimates for the difference
// to be mentioned.
const noteworthy = 1.25

// compare adds a remark if earlier runs contradict the workflow.
func (o *expectation) compare(file, earlier *source) {
	var says, took float64
	for i, g := range file.guesses {
		if e := earlier.guesses[i]; g.known && e.known {
			says, took = says+g.runtime.Seconds(), took+e.runtime.Seconds()
		}
	}
	if says == 0 || took < noteworthy*says && took > says/noteworthy {
		return
	}
	o.remarks = append(o.remarks, fmt.Sprintf("in %s, tasks took %.2g × the file's estimates, which are not used "+
		"for them", plan.RunList(earlier.Runs), took/says))
}

// task returns a plan's view of a task; ok is false if its runtime is unknown. The planned memory is the largest value
// in the source of the runtime and in the sources before it. It is never less than the amount in the workflow, because
// the task will request that amount.
func (o *expectation) task(i int) (planned plan.Task, ok bool) {
	t := &o.tasks[i]
	planned = plan.Task{ID: t.ID, Kind: o.kinds[i], Label: t.Label(), Needs: t.Resources}
	for _, s := range o.sources {
		g := s.guesses[i]
		if !ok || planned.Needs.MemoryMiB == 0 {
			planned.Needs.MemoryMiB = max(planned.Needs.MemoryMiB, g.memoryMiB)
		}
		if g.known && !ok {
			planned.Runtime, ok = g.runtime, true
			if o.rest(i) {
				s.kinds[o.kinds[i]] = true
				s.Count++
			}
		}
	}
	return planned, ok
}

// basis describes the sources from which runtimes were taken.
func (o *expectation) basis() (b Basis) {
	b.Remarks, b.Errors, b.Whole = o.remarks, plan.Errors{}, true
	for _, s := range o.sources {
		if s.Count == 0 {
			continue
		}
		if s.Source == plan.Guessed {
			s.Kinds = slices.Sorted(maps.Keys(s.kinds))
		}
		b.Estimates = append(b.Estimates, s.Estimates)
		for kind := range s.kinds {
			e, ok := s.errors(kind)
			if b.Whole = b.Whole && ok; ok {
				b.Errors[kind] = e
			}
		}
	}
	return b
}

// errors returns the distribution of a kind's errors; ok is false if too few runtimes were measured.
func (s *source) errors(kind string) (e plan.KindErrors, ok bool) {
	if s.estimator == nil {
		return e, false
	}
	ratios, runtimes := s.estimator.Errors(kind)
	if runtimes < plan.LeastRuntimes {
		return e, false
	}
	return plan.NewKindErrors(runtimes, ratios), true
}
