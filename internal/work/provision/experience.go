package provision

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// Experience holds estimates for tasks in addition to those in their workflow. The runtime of a task is taken from the
// first of these sources that contains it: Given, the workflow, Earlier, Fallback. With Learn, Earlier precedes the
// workflow.
type Experience struct {
	Given    *profile.Profile // the requested profile, or nil
	Earlier  *profile.Profile // the profile of earlier runs, or nil
	Learn    bool
	Fallback time.Duration // for every task without another estimate; 0: none

	// Speeds are the speeds of the hosts in the profiles; estimates are for their reference host. If Speeds is nil, all
	// hosts are equally fast.
	Speeds profile.Speeds
}

// A guess is a source's estimate for a task.
type guess struct {
	runtime   time.Duration // in whole milliseconds
	known     bool          // whether the runtime is known
	memoryMiB int           // upper limit; 0: unknown
}

// A source provides estimates.
type source struct {
	name    string // a phrase that can follow "from"
	guesses []guess
	kinds   map[string]bool // kinds of tasks whose runtimes were taken from this source
}

func newSource(name string, tasks int, of func(task int) guess) *source {
	s := &source{name: name, guesses: make([]guess, tasks), kinds: map[string]bool{}}
	for i := range s.guesses {
		s.guesses[i] = of(i)
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
}

// workflowItself is the name of the workflow as a source; it is not mentioned if it is the only source.
const workflowItself = "the workflow"

// newExpectation creates the sources in the order of their precedence. It fails if Given has no runtime for any of the
// tasks: a plan that ignored the requested profile would be a surprise.
func newExpectation(w *workflow.Workflow, x Experience) (*expectation, error) {
	o := &expectation{tasks: w.Tasks, kinds: make([]string, len(w.Tasks))}
	var known []profile.Subject
	if x.Given != nil || x.Earlier != nil {
		known = profile.Tasks(w)
	}
	for i := range w.Tasks {
		o.kinds[i] = w.Tasks[i].Name
		if known != nil {
			o.kinds[i] = known[i].Transformation
		}
	}
	file := newSource(workflowItself, len(w.Tasks), func(i int) guess {
		estimate, ok := w.Tasks[i].Estimated()
		return guess{estimate, ok, w.Tasks[i].MemoryMiB}
	})
	o.sources = []*source{file}
	if x.Earlier != nil {
		earlier := learned(earlierRuns(x.Earlier), w, known, x.Earlier, x.Speeds)
		o.compare(file, earlier, x.Learn)
		o.sources = append(o.sources, earlier)
		if x.Learn {
			slices.Reverse(o.sources)
		}
	}
	if x.Given != nil {
		given := learned("the profile", w, known, x.Given, x.Speeds)
		if !slices.ContainsFunc(given.guesses, func(g guess) bool { return g.known }) {
			return nil, corral.ErrorAt(corral.Invalid, "profiles", "no kind of task of the workflow has a runtime "+
				"there; %s is one of its kinds", o.kinds[0])
		}
		o.sources = slices.Insert(o.sources, 0, given)
	}
	if x.Fallback > 0 {
		o.sources = append(o.sources, newSource("--default-runtime", len(w.Tasks), func(int) guess {
			return guess{x.Fallback, true, 0}
		}))
	}
	return o, nil
}

// earlierRuns describes how many runs a profile covers.
func earlierRuns(p *profile.Profile) string {
	if n := len(p.Runs()); n > 1 {
		return fmt.Sprintf("%d earlier runs", n)
	}
	return "an earlier run"
}

// learned returns a source whose estimates are based on a profile: the runtime that the model of a task's class
// predicts for the size of its input, and the maximum memory used by a task of that class.
func learned(name string, w *workflow.Workflow, tasks []profile.Subject, p *profile.Profile,
	speeds profile.Speeds) *source {
	estimator := profile.NewEstimator(p, speeds)
	return newSource(name, len(tasks), func(i int) guess {
		size, known := profile.InputBytes(w, i)
		if !known {
			size = -1
		}
		t := tasks[i]
		t.Host = "" // the host on which it will run has not been chosen yet
		x, ok := estimator.Estimate(t, size)
		return guess{x.Point, ok, int(min(math.MaxInt32, (x.MemoryBytes+1<<20-1)>>20))}
	})
}

// noteworthy is the minimum factor by which earlier runs must differ from the workflow's estimates for the difference
// to be mentioned.
const noteworthy = 1.25

// compare adds a remark if earlier runs contradict the workflow, and states which of the two is used.
func (o *expectation) compare(file, earlier *source, learn bool) {
	var says, took float64
	for i, g := range file.guesses {
		if e := earlier.guesses[i]; g.known && e.known {
			says, took = says+g.runtime.Seconds(), took+e.runtime.Seconds()
		}
	}
	if says == 0 || took < noteworthy*says && took > says/noteworthy {
		return
	}
	then := "--learn plans with that"
	if learn {
		then = "the plan uses that"
	}
	o.remarks = append(o.remarks, fmt.Sprintf("by %s, tasks take %.2g × what the workflow says: %s", earlier.name,
		took/says, then))
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
			s.kinds[o.kinds[i]] = true
		}
	}
	return planned, ok
}

// reasons describes the sources of the runtimes, unless all runtimes are from the workflow.
func (o *expectation) reasons() []string {
	var parts []string
	own := true
	for _, s := range o.sources {
		if n := len(s.kinds); n > 0 {
			own = own && s.name == workflowItself
			parts = append(parts, fmt.Sprintf("%d from %s", n, s.name))
		}
	}
	if own {
		return o.remarks
	}
	all := slices.Compact(slices.Sorted(slices.Values(o.kinds)))
	number, rest, _ := strings.Cut(parts[0], " ")
	parts[0] = fmt.Sprintf("%s of %d kinds of tasks %s", number, len(all), rest)
	return append([]string{"runtimes of " + strings.Join(parts, "; ")}, o.remarks...)
}
