// Package besteffort simulates a workflow without slots: each task is a job of its own in a site's queue, submitted as
// soon as its parents have ended. Plans with slots are compared with it (Singh, PhD thesis, University of Southern
// California, 2008, section 4.7).
//
// The comparison is fair: the workflow meets the same queue in the same state, other users' jobs continue to arrive,
// and its jobs compete with them. Jobs that become ready at the same time are submitted by rank, as in plans with
// slots.
//
// With several sites, a task is assigned to the site with the fewest queued and running jobs when it becomes ready
// (section 4.9); its job is submitted there once its data has arrived. The thesis does not state whether data may be
// transferred while a job is queued. Here it may not, because a job that started without its inputs would hold
// processors for nothing.
package besteffort

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// ours is the user number of the workflow's jobs; no other user has this number.
const ours = -3

// A moment is the end of a task, or the submission of its job.
type moment struct {
	at   time.Duration
	rank int // rank of the task in order of submission
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

// A play is the state of a simulated workflow.
type play struct {
	slotted.Problem
	queues  []*queue.Queue
	order   []int // task indices by rank
	place   []int // :: task → index in order
	missing []int // :: task → number of unfinished parents
	site    []int // :: task → its site
	coming  []int // :: site → number of jobs to be submitted there
	next    heap.Heap[moment]
	left    int
	end     time.Duration
}

// Run simulates the problem's workflow in a queue for each site and returns its makespan: the time from the queues'
// current instant, which must be the same for all, to the end of the last task. The queues are not changed. If no site
// accepts a task, or a task waits forever, the error is of kind Unsatisfiable. The cost is the tasks' processor time,
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

// run advances the time until all tasks have ended. Tasks that end at an instant release other tasks, which are
// submitted at the same instant, before the queues schedule.
func (r *play) run() error {
	for r.left > 0 {
		at, ok := r.soonest()
		if !ok {
			return corral.Errorf(corral.Unsatisfiable, "%d tasks wait forever", r.left)
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

// soonest returns the time of the next event in the workflow or in a queue.
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

// release chooses the site of a task whose parents have ended, and submits it once its data has arrived at that site.
func (r *play) release(i int, now time.Duration) {
	fewest, best := 0, -1
	for s, q := range r.queues {
		jobs := q.Waiting() + q.Running() + r.coming[s]
		if r.Work.Task(i).Needs.CPUs <= r.Sites[s].Processors && (best < 0 || jobs < fewest) {
			fewest, best = jobs, s
		}
	}
	r.site[i] = max(best, 0) // if no site is large enough, the first one rejects it
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
		return corral.Errorf(corral.Unsatisfiable, "no site accepts task %.80s: %s", t.ID, why)
	}
	return nil
}

// started registers the end of a task's job.
func (r *play) started(j queue.Job, at time.Duration) {
	if j.User == ours {
		r.next.Push(moment{at + j.Runtime, r.place[j.ID], true})
	}
}

// finish releases the children whose last unfinished parent was this task.
func (r *play) finish(i int, at time.Duration) {
	r.left--
	r.end = max(r.end, at)
	for _, c := range r.Work.Graph.Children(i) {
		if r.missing[c]--; r.missing[c] == 0 {
			r.release(c, at)
		}
	}
}
