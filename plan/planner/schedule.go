package planner

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan"
)

// A line is a host's share of a site, held by one pilot after another. Each hold is an interval in which tasks run
// there, or in which the host is kept for the next task.
type line struct {
	site  *plan.Site
	host  corral.Resources
	ready time.Duration // the earliest time at which the workers of its first pilot can be present
	slot  *Slot         // its pilots stay within this slot; nil: limited by the site only
	leave time.Duration // how long a pilot is held after its last task
	keep  time.Duration // how long an idle host is kept, instead of released and requested again

	least corral.Resources // tasks that need less of a component run on other lines

	reserve float64 // additional walltime as a share of the needed time

	running int // number of running tasks
	holds   []hold

	static  bool // it has a single hold, which begins when it is ready and lasts until the end of the plan
	present int  // 1 + the index of the present pilot that the host belongs to; 0: the host has to be requested
	number  int  // index of the host in that pilot
	mates   *mates
	doubt   float64 // share of a task's runtime that must remain of the hold after the task's end
}

// mates links the hosts of one present pilot: the pilot stays as long as any host is busy, and is idle once all hosts
// are idle.
type mates struct {
	running int           // number of tasks running on the hosts
	to      time.Duration // the end of their last task
}

// A hold is an interval in which a pilot's workers are present. To is the end of the last task.
type hold struct {
	plan.Span
	latest time.Duration // no task may end later, due to the walltime or maintenance
}

// longest returns how long workers can be present within one walltime.
func longest(s *plan.Site, leave time.Duration) time.Duration {
	return s.Walltime - s.Overhead - s.Margin - leave
}

// room returns the hold for a task that begins now: the current hold, or a new hold that also begins now. ok is false
// if the task has to wait.
func (l *line) room(now, runtime time.Duration) (h hold, fresh, ok bool) {
	if n := len(l.holds); n > 0 {
		h = l.holds[n-1]
		if now+runtime+time.Duration(l.doubt*float64(runtime)) <= h.latest && l.stays(now, h.To) {
			return h, false, true
		}
	}
	if l.running > 0 || l.present > 0 || l.static {
		return hold{}, false, false // wait until it is empty: two pilots at once would exceed the allowed number
	}
	h, ok = l.fresh(now)
	return h, true, ok && now+runtime <= h.latest
}

// fresh returns a hold that begins now; ok is false if no pilot can be there now.
func (l *line) fresh(now time.Duration) (h hold, ok bool) {
	h = hold{plan.Span{From: now, To: now}, now + longest(l.site, l.leave)}
	if l.slot != nil {
		if n := len(l.holds); n > 0 && now < l.holds[n-1].To+l.again() {
			return hold{}, false
		}
		h.latest = min(h.latest, l.slot.To-l.site.Margin-l.leave)
	}
	for _, c := range l.site.Closed {
		if c.Overlaps(plan.Span{From: now - l.site.Overhead, To: now + 1}) {
			return hold{}, false
		}
		if c.From > now {
			h.latest = min(h.latest, c.From-l.site.Margin-l.leave)
		}
	}
	return h, true
}

// again returns the delay between the last task of a pilot in a slot and the workers of the next one: the place of the
// next pilot becomes free after the margin of the previous walltime.
func (l *line) again() time.Duration { return l.leave + l.site.Margin + l.site.Overhead }

// stays reports whether the pilot that holds a line is still present; to is the end of its last task. An idle pilot is
// kept at least until the end of the billing period that is paid anyway.
func (l *line) stays(now, to time.Duration) bool {
	if l.mates != nil {
		return l.mates.running > 0 || now-l.mates.to <= l.keep
	}
	return l.running > 0 || now-to <= l.keep || now <= l.paid(to)
}

// paid returns the time until which a pilot with a last task that ends at the given time can stay at the same price.
func (l *line) paid(to time.Duration) time.Duration {
	start := l.holds[len(l.holds)-1].From - l.site.Overhead
	return start + l.site.Tariff.Billing.Billed(to+l.leave-start) - l.leave
}

// A schedule is a list schedule of all tasks on given lines.
type schedule struct {
	start    []time.Duration // per task
	line     []int32
	hold     []int32 // index of the hold in the line; negative: the task fits no line
	lines    []*line
	makespan time.Duration
	placed   int // number of placed tasks; smaller than their total if some fit no line at any time
}

// A scheduler makes one schedule. Time advances from one task end to the next. Ready tasks are placed by priority on
// the first line that they fit. As a result, the first lines are full, and the last lines are empty while the workflow
// is narrow, which produces the staircase.
type scheduler struct {
	*tasks
	cluster plan.Cluster
	out     schedule
	missing []int32            // unfinished parents
	ready   []heap.Heap[int32] // for each class: places of ready tasks
	ends    heap.Heap[ending]
	wakes   heap.Heap[time.Duration] // when a line becomes ready or a maintenance period ends
	hosts   *hostTree
	next    time.Duration // when the cluster can start another task
	coming  []ending      // tasks that will become ready, in order of time
}

type ending struct {
	at   time.Duration
	task int32
}

// list returns the list schedule of tasks on lines. Each task must fit some line on its own for its whole runtime.
func list(t *tasks, cluster plan.Cluster, lines []*line) *schedule {
	s := newScheduler(t, cluster, lines)
	s.run()
	return &s.out
}

func newScheduler(t *tasks, cluster plan.Cluster, lines []*line) *scheduler {
	n := len(t.work.Tasks)
	s := &scheduler{tasks: t, cluster: cluster, missing: make([]int32, n), hosts: newHostTree(len(lines)),
		out: schedule{start: make([]time.Duration, n), line: make([]int32, n), hold: make([]int32, n), lines: lines},
		ends: heap.New(func(a, b ending) bool {
			return a.at < b.at || a.at == b.at && a.task < b.task
		}), wakes: heap.Ordered[time.Duration]()}
	for range t.needs {
		s.ready = append(s.ready, heap.Ordered[int32]())
	}
	for i := range s.out.hold {
		s.out.hold[i] = -1
	}
	running := s.resume(t.running)
	for i := range n {
		s.missing[i] = int32(len(t.work.Graph.Parents(i)))
		if s.missing[i] == 0 && !running[int32(i)] {
			s.ready[t.class[i]].Push(t.place[i])
		}
	}
	s.arrivals()
	return s
}

// arrivals opens the lines that are ready from the beginning and schedules wake-ups for the others.
func (s *scheduler) arrivals() {
	woken := map[time.Duration]bool{0: true}
	for i, l := range s.out.lines {
		if l.running == 0 {
			s.hosts.set(i, l.host)
		}
		for _, at := range append(ends(l.site.Closed, l.site.Overhead), l.ready) {
			if !woken[at] {
				woken[at] = true
				s.wakes.Push(at)
			}
		}
	}
}

func ends(closed []plan.Span, overhead time.Duration) (all []time.Duration) {
	for _, c := range closed {
		all = append(all, c.To+overhead)
	}
	return all
}

func (s *scheduler) run() {
	for now, ok := time.Duration(0), true; ok; now, ok = s.after() {
		for s.ends.Len() > 0 && s.ends.First().at == now {
			s.finish(s.ends.Pop().task, now)
		}
		for len(s.coming) > 0 && s.coming[0].at <= now {
			i := s.coming[0].task
			s.ready[s.class[i]].Push(s.place[i])
			s.coming = s.coming[1:]
		}
		for s.wakes.Len() > 0 && s.wakes.First() <= now {
			s.wakes.Pop()
		}
		s.fill(now)
	}
}

// after returns the time of the next event; ok is false if there is no further event.
func (s *scheduler) after() (at time.Duration, ok bool) {
	at = math.MaxInt64
	if s.ends.Len() > 0 {
		at = s.ends.First().at
	}
	if len(s.coming) > 0 {
		at = min(at, s.coming[0].at)
	}
	if s.wakes.Len() > 0 {
		at = min(at, s.wakes.First())
	}
	return at, at < math.MaxInt64
}

// fill starts the ready tasks that fit, highest priority first.
func (s *scheduler) fill(now time.Duration) {
	full := make([]bool, len(s.ready)) // classes whose first task has to wait
	for {
		best := -1
		for c := range s.ready {
			if q := &s.ready[c]; !full[c] && q.Len() > 0 && (best < 0 || q.First() < s.ready[best].First()) {
				best = c
			}
		}
		if best < 0 {
			return
		}
		if s.begin(s.byPlace[s.ready[best].First()], now) {
			s.ready[best].Pop()
		} else {
			full[best] = true
		}
	}
}

// begin puts a task on the first line that has room for it; ok is false if no line has room.
func (s *scheduler) begin(i int32, now time.Duration) (ok bool) {
	need := s.needs[s.class[i]]
	due := max(now+s.cluster.Turn(), s.next)
	start := (due + time.Millisecond - 1).Truncate(time.Millisecond) // several may begin within one millisecond
	var h hold
	var fresh bool
	at := s.hosts.first(need, func(k int) bool {
		l := s.out.lines[k]
		if l.ready > now || !l.least.FitIn(need) {
			return false
		}
		h, fresh, ok = l.room(now, start+l.site.Takes(s.work.Tasks[i])-now)
		return ok
	})
	if at < 0 {
		return false
	}
	if s.cluster.Rate > 0 {
		s.next = due + time.Duration(float64(time.Second)/s.cluster.Rate)
	}
	l := s.out.lines[at]
	if fresh {
		l.holds = append(l.holds, h)
	}
	s.occupy(at, i, start)
	return true
}

// occupy starts a task on a line, in its last hold.
func (s *scheduler) occupy(at int, i int32, start time.Duration) {
	l := s.out.lines[at]
	end := start + l.site.Takes(s.work.Tasks[i])
	l.running++
	last := &l.holds[len(l.holds)-1]
	last.To = max(last.To, end)
	if l.mates != nil {
		l.mates.running++
		l.mates.to = max(l.mates.to, end)
	}
	s.out.start[i], s.out.line[i], s.out.hold[i] = start, int32(at), int32(len(l.holds)-1)
	s.out.makespan = max(s.out.makespan, end)
	s.out.placed++
	s.hosts.set(at, s.hosts.at(at).Minus(s.needs[s.class[i]]))
	s.ends.Push(ending{end, i})
}

func (s *scheduler) finish(i int32, now time.Duration) {
	at := int(s.out.line[i])
	l := s.out.lines[at]
	l.running--
	if l.slot != nil && l.running == 0 {
		s.wakes.Push(now + l.again())
	}
	if l.mates != nil {
		l.mates.running--
	}
	s.hosts.set(at, s.hosts.at(at).Plus(s.needs[s.class[i]]))
	for _, c := range s.work.Graph.Children(int(i)) {
		if s.missing[c]--; s.missing[c] == 0 {
			if wait := s.cluster.Hop - s.cluster.Turn(); wait > 0 {
				s.coming = append(s.coming, ending{now + wait, int32(c)})
				continue
			}
			s.ready[s.class[c]].Push(s.tasks.place[c])
		}
	}
}
