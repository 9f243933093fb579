// Package besteffort plays a workflow as users without slots run it: each task is a job of its own in a site's queue,
// submitted as soon as its parents have ended. It is what plans on slots are compared with (Singh, PhD thesis,
// University of Southern California, 2008, section 4.7).
//
// It is a real competitor: it meets the same queue in the same state, other people's jobs go on coming while it runs,
// and its jobs wait among them and make them wait. Jobs that become ready together are submitted in the order of their
// ranks, which is that of plans on slots.
//
// With several sites a task goes to the one that has the fewest jobs, waiting and running, when it becomes ready
// (section 4.9); its job is submitted there once its data has come. The thesis does not say whether data may travel
// while a job waits: here it may not, since a job that started without its inputs would hold processors for nothing.
package besteffort

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// ours is the user of the workflow's jobs: no other has this number.
const ours = -3

// A moment is when a task ends, or when its job is submitted.
type moment struct {
	at   time.Duration
	rank int // of the task in the order of submission
	ends bool
}

func (m moment) before(n moment) bool {
	if m.at != n.at {
		return m.at < n.at
	}
	if m.ends != n.ends {
		return m.ends
	}
	return m.rank < n.rank
}

// A play is a workflow on its way through the queues.
type play struct {
	slotted.Problem
	queues  []*queue.Queue
	order   []int // of the tasks, by rank
	place   []int // :: task → its place in order
	missing []int // :: task → parents that have not ended
	site    []int // :: task → where it runs
	coming  []int // :: site → jobs that are to be submitted there
	next    heap.Heap[moment]
	left    int
	end     time.Duration
}

// Run plays the problem's workflow in a queue for each site and returns its makespan, from the instant that the queues
// have reached, which is the same, to the end of the last task. The queues are not changed. A task that no site takes
// is an error of kind Unsatisfiable, and so is one that waits for ever. What it costs is the tasks' processor time,
// slotted.Work.
func Run(p slotted.Problem, queues []*queue.Queue) (makespan time.Duration, err error) {
	n := len(p.Work.Tasks)
	r := &play{Problem: p, order: slotted.Order(p), place: make([]int, n), missing: make([]int, n),
		site: make([]int, n), coming: make([]int, len(queues)), next: heap.New(moment.before), left: n}
	for _, q := range queues {
		r.queues = append(r.queues, q.Clone())
	}
	origin := r.queues[0].Now()
	r.end = origin
	for k, i := range r.order {
		r.place[i], r.missing[i] = k, len(p.Work.Graph.Parents(i))
	}
	for _, i := range r.order {
		if r.missing[i] == 0 {
			r.release(i, origin)
		}
	}
	if err := r.run(); err != nil {
		return 0, err
	}
	return r.end - origin, nil
}

// run lets time pass until all tasks have ended. What ends at an instant releases tasks that are submitted at the same
// instant, before the queues make their passes.
func (r *play) run() error {
	for r.left > 0 {
		at, ok := r.soonest()
		if !ok {
			return corral.Errorf(corral.Unsatisfiable, "%d tasks wait for ever", r.left)
		}
		for s := range r.queues {
			r.queues[s].Reach(at, r.started)
		}
		for r.next.Len() > 0 && r.next.First().at <= at {
			if m := r.next.Pop(); m.ends {
				r.finish(r.order[m.rank], m.at)
			} else if err := r.submit(r.order[m.rank]); err != nil {
				return err
			}
		}
		for s := range r.queues {
			r.queues[s].Advance(at, r.started)
		}
	}
	return nil
}

// soonest is when something happens next, in the workflow or in a queue.
func (r *play) soonest() (at time.Duration, ok bool) {
	at = queue.Open
	if r.next.Len() > 0 {
		at, ok = r.next.First().at, true
	}
	for _, q := range r.queues {
		if t, some := q.Next(); some {
			at, ok = min(at, t), true
		}
	}
	return at, ok
}

// release chooses the site of a task whose parents have ended, and has it submitted when its data is there.
func (r *play) release(i int, now time.Duration) {
	fewest, best := 0, -1
	for s, q := range r.queues {
		jobs := q.Waiting() + q.Running() + r.coming[s]
		if r.Work.Task(i).Needs.CPUs <= r.Sites[s].Processors && (best < 0 || jobs < fewest) {
			fewest, best = jobs, s
		}
	}
	r.site[i] = max(best, 0) // if none is large enough, the first one refuses it
	r.coming[r.site[i]]++
	at := now
	for _, p := range r.Work.Graph.Parents(i) {
		if r.site[p] != r.site[i] && r.Transfer != nil {
			at = max(at, now+r.Transfer(p, i))
		}
	}
	r.next.Push(moment{at, r.place[i], false})
}

func (r *play) submit(i int) error {
	t := &r.Work.Tasks[i]
	r.coming[r.site[i]]--
	runtime := t.Runtime
	if own := r.Sites[r.site[i]].Runtimes; own != nil {
		runtime = own[i]
	}
	if runtime == 0 {
		r.next.Push(moment{r.queues[r.site[i]].Now(), r.place[i], true})
		return nil
	}
	j := queue.Job{ID: i, User: ours, Processors: t.Needs.CPUs, Requested: runtime, Runtime: runtime}
	if why := r.queues[r.site[i]].Submit(j); why != "" {
		return corral.Errorf(corral.Unsatisfiable, "no site takes task %.80s: %s", t.ID, why)
	}
	return nil
}

// started notes when a task's job will end.
func (r *play) started(j queue.Job, at time.Duration) {
	if j.User == ours {
		r.next.Push(moment{at + j.Runtime, r.place[j.ID], true})
	}
}

// finish releases the children of a task whose last parent it was.
func (r *play) finish(i int, at time.Duration) {
	r.left--
	r.end = max(r.end, at)
	for _, c := range r.Work.Graph.Children(i) {
		if r.missing[c]--; r.missing[c] == 0 {
			r.release(c, at)
		}
	}
}
