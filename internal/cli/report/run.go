package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/workflow"
)

// RunFacts holds corrald's data about a run. Only the last execution of each task is known.
type RunFacts struct {
	Run      corral.Run
	Flow     *workflow.Workflow // the workflow that was run; once the run is over, with measurements
	Tasks    []api.TaskStatus
	Glideins []corral.Glidein // of the run's cluster; must include deleted glideins
	Plan     *Report          // report of the plan that the run's label names; nil: none
	Now      time.Time
}

// A RunReport describes the course of a run. Times are relative to the run's creation.
type RunReport struct {
	Run      corral.RunID      `json:"run_id"`
	Workflow string            `json:"workflow"` // the workflow's name
	State    corral.RunState   `json:"state"`
	Reason   string            `json:"reason,omitempty"` // why the run failed or makes no progress
	Begun    time.Time         `json:"created_at"`
	Span     corral.Seconds    `json:"span_s"` // time until the run's end, or until now
	Tasks    corral.RunTasks   `json:"tasks"`
	Workers  int               `json:"workers"`   // number of workers that ran its tasks
	PeakCPUs int               `json:"peak_cpus"` // maximum number of cpus held by pilots at once
	Spent    TimeUse           `json:"spent"`
	Kinds    []Measurement     `json:"kinds"`            // kinds of tasks by total time, the largest first
	Report   *corral.RunReport `json:"report,omitempty"` // set once the run is over
	Plan     *Report           `json:"plan,omitempty"`   // the plan with its prediction

	figures []plot.Figure // the schedule, the cpus, and the tasks that waited for a cpu
}

// A TimeUse divides the time of the peak number of held cpus, from the run's creation to its end, by use, in
// cpu-seconds. The cpu time of other runs on the cluster, and of earlier attempts at a task, counts as idle or dispatch
// time.
type TimeUse struct {
	Running  corral.Seconds `json:"running_s"`  // used by running tasks
	Dispatch corral.Seconds `json:"dispatch_s"` // held and idle, although a task was ready
	Idle     corral.Seconds `json:"idle_s"`     // held and idle, without a ready task
	Waiting  corral.Seconds `json:"waiting_s"`  // not held yet or no longer held, although a task was ready
	Unneeded corral.Seconds `json:"unneeded_s"` // not held, without a ready task
}

// A Measurement summarizes the executed tasks of one transformation.
type Measurement struct {
	Name        string         `json:"kind"`
	Tasks       int            `json:"tasks"`  // number of tasks that have ended
	Failed      int            `json:"failed"` // number of these tasks that failed
	Sum         corral.Seconds `json:"sum_s"`
	Mean        corral.Seconds `json:"mean_s"`
	Most        corral.Seconds `json:"max_s"`        // maximum time of one task
	CPU         corral.Seconds `json:"cpu_s"`        // processor time of all these tasks
	MemoryBytes int64          `json:"memory_bytes"` // largest resident set of one task
	Read        int64          `json:"read_bytes"`   // total of all these tasks
	Written     int64          `json:"written_bytes"`
}

// A stay is the period in which a task was ready and then ran. A task that has not started counts as ready until the
// run's end.
type stay struct {
	plot.Span        // the period in which the task ran; empty: it has not started
	worker    string // the worker's id
	kind      string // the task's transformation
	ready     corral.Seconds
	running   bool // the task has not ended
}

// OfRun creates the report of a run. Tasks and flow must belong to the same workflow.
func OfRun(f RunFacts) *RunReport {
	r := &RunReport{Run: f.Run.ID, Workflow: f.Run.Workflow, State: f.Run.State, Reason: f.Run.Reason,
		Begun: f.Run.CreatedAt, Tasks: f.Run.Tasks, Report: f.Run.Report, Plan: f.Plan}
	r.Span = since(f.Run.CreatedAt, f.Now)
	if f.Run.State.Over() {
		r.Span = since(f.Run.CreatedAt, f.Run.EndedAt)
	}
	all := stays(f, r.Span)
	for _, x := range all {
		r.Span = max(r.Span, x.To) // the clocks of workers differ
	}
	var busy, ready, wanted []plot.Span
	var begun []stay
	workers := map[string]bool{}
	for _, x := range all {
		w := plot.Span{From: x.ready, To: x.From, CPUs: x.CPUs}
		if x.worker == "" {
			w.To = r.Span
		} else {
			begun, busy, workers[x.worker] = append(begun, x), append(busy, x.Span), true
		}
		wanted = append(wanted, w)
		ready = append(ready, plot.Span{From: w.From, To: w.To, CPUs: 1})
	}
	h, b := plot.Sum(heldBy(f, begun, r.Span)), plot.Sum(busy)
	r.Workers, r.PeakCPUs, r.Kinds = len(workers), int(h.Peak()), measured(f)
	r.Spent = spentOf(h, b, plot.Sum(wanted), r.Span)
	r.figures = []plot.Figure{
		ganttOf(r, begun),
		plot.Staircase{Title: "Cpus", Since: "the run's beginning", Held: h, Busy: b},
		plot.ReadyTasks{Title: "Tasks that waited for a cpu", Ready: plot.Sum(ready), End: r.Span},
	}
	return r
}

// stays returns the stays of tasks that became ready, by their start.
func stays(f RunFacts, end corral.Seconds) (all []stay) {
	index := make(map[string]int, len(f.Flow.Tasks)) // :: id → task
	for i := range f.Flow.Tasks {
		index[f.Flow.Tasks[i].ID] = i
	}
	ended := make([]corral.Seconds, len(f.Flow.Tasks)) // :: task → end
	for _, t := range f.Tasks {
		if i, ok := index[t.ID]; ok && !t.EndedAt.IsZero() {
			ended[i] = since(f.Run.CreatedAt, t.EndedAt)
		}
	}
	for _, t := range f.Tasks {
		i, known := index[t.ID]
		// A task that ended before the run was created ran as part of an earlier run.
		ran := !t.StartedAt.IsZero() && (t.EndedAt.IsZero() || t.EndedAt.After(f.Run.CreatedAt))
		if !known || !ran && t.State != corral.TaskReady {
			continue
		}
		x := stay{kind: kindOf(&f.Flow.Tasks[i])}
		x.CPUs = max(1, f.Flow.Tasks[i].CPUs)
		for _, p := range f.Flow.Graph.Parents(i) {
			x.ready = max(x.ready, ended[p])
		}
		if ran {
			x.worker, x.running = t.Worker, t.EndedAt.IsZero()
			x.From, x.To = since(f.Run.CreatedAt, t.StartedAt), end
			if !x.running {
				x.To = since(f.Run.CreatedAt, t.EndedAt)
			}
			x.ready = min(x.ready, x.From)
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(a, b stay) int { return cmp.Compare(a.From, b.From) })
	return waiting(f, all)
}

// waiting counts tasks as ready if a worker has received them but has no cpu for them. Only the worker itself knows
// which of its tasks are running; usually these are the tasks that it received first. The number of cpus is known only
// for workers of known pilots.
func waiting(f RunFacts, all []stay) []stay {
	cpus := make(map[string]int) // :: tag → cpus of a worker
	for _, g := range f.Glideins {
		for _, a := range g.Attempts {
			cpus[a.Tag] = g.CPUs
		}
	}
	used := make(map[string]int) // :: worker → number of its cpus in use
	for i := range all {
		x := &all[i]
		tag, _, _ := strings.Cut(x.worker, "/")
		if !x.running || cpus[tag] == 0 {
			continue
		}
		if used[x.worker] += x.CPUs; used[x.worker] > cpus[tag] {
			x.worker, x.running, x.From, x.To = "", false, 0, 0
		}
	}
	return all
}

// kindOf returns the transformation of a task.
func kindOf(t *workflow.Task) string { return cmp.Or(t.Name, t.ID) }

// heldBy returns the cpus that pilots held during the run. A worker without a known pilot held its cpus from its first
// task to its last.
func heldBy(f RunFacts, all []stay, end corral.Seconds) (held []plot.Span) {
	pilots := make(map[string]bool) // :: tag → held something
	for _, g := range f.Glideins {
		for _, a := range g.Attempts {
			if a.StartedAt.IsZero() || !a.EndedAt.IsZero() && a.EndedAt.Before(f.Run.CreatedAt) {
				continue
			}
			s := plot.Span{From: since(f.Run.CreatedAt, a.StartedAt), To: end, CPUs: g.Hosts * g.CPUs}
			if !a.EndedAt.IsZero() {
				s.To = min(end, since(f.Run.CreatedAt, a.EndedAt))
			}
			if s.To > s.From {
				held, pilots[a.Tag] = append(held, s), true
			}
		}
	}
	others := make(map[string][]plot.Span) // :: worker → spans of the tasks that ran there
	for _, x := range all {
		if tag, _, _ := strings.Cut(x.worker, "/"); !pilots[tag] {
			others[x.worker] = append(others[x.worker], x.Span)
		}
	}
	for _, spans := range others {
		levels := plot.Sum(spans)
		if len(levels) > 0 {
			held = append(held, plot.Span{From: levels[0].From, To: levels.End(), CPUs: int(levels.Peak())})
		}
	}
	return held
}

// measured summarizes the measurements of each transformation's tasks.
func measured(f RunFacts) []Measurement {
	state := make(map[string]*api.TaskStatus, len(f.Tasks))
	for i := range f.Tasks {
		state[f.Tasks[i].ID] = &f.Tasks[i]
	}
	index := map[string]int{}
	all := []Measurement{}
	for i := range f.Flow.Tasks {
		w := &f.Flow.Tasks[i]
		t := state[w.ID]
		if t == nil || t.StartedAt.IsZero() || !t.EndedAt.After(f.Run.CreatedAt) {
			continue
		}
		k, known := index[kindOf(w)]
		if !known {
			k, index[kindOf(w)] = len(all), len(all)
			all = append(all, Measurement{Name: kindOf(w)})
		}
		m, took := &all[k], corral.Seconds(max(0, t.EndedAt.Sub(t.StartedAt)))
		m.Tasks++
		m.Sum, m.Most = m.Sum+took, max(m.Most, took)
		if t.State == corral.TaskFailed {
			m.Failed++
		}
		if f.Run.Report == nil { // executions in the file belong to another run
			continue
		}
		m.CPU += corral.Seconds(w.CPUTime)
		m.MemoryBytes = max(m.MemoryBytes, w.MemoryBytes)
		m.Read, m.Written = m.Read+w.ReadBytes, m.Written+w.WrittenBytes
	}
	for i := range all {
		all[i].Mean = all[i].Sum / corral.Seconds(all[i].Tasks)
	}
	slices.SortStableFunc(all, func(a, b Measurement) int { return cmp.Compare(b.Sum, a.Sum) })
	return all
}

// spentOf adds up the uses of the time between consecutive changes of the held, busy and ready levels.
func spentOf(held, busy, ready plot.Levels, end corral.Seconds) (s TimeUse) {
	var instants []corral.Seconds
	for _, l := range []plot.Levels{held, busy, ready} {
		for _, at := range l {
			instants = append(instants, min(at.From, end))
		}
	}
	instants = append(instants, 0, end)
	slices.Sort(instants)
	instants = slices.Compact(instants)
	peak := held.Peak()
	var h, b, q cursor
	for i, at := range instants[:len(instants)-1] {
		span := float64(instants[i+1] - at)
		has, runs, waits := h.at(held, at), b.at(busy, at), q.at(ready, at)
		idle := max(0, has-runs)
		s.Running += corral.Seconds(runs * span)
		s.Dispatch += corral.Seconds(min(idle, waits) * span)
		s.Idle += corral.Seconds((idle - min(idle, waits)) * span)
		lacking := max(0, peak-max(has, runs))
		waiting := min(lacking, max(0, runs+waits-max(has, runs)))
		s.Waiting += corral.Seconds(waiting * span)
		s.Unneeded += corral.Seconds((lacking - waiting) * span)
	}
	return s
}

// A cursor reads levels at increasing instants.
type cursor int

func (c *cursor) at(l plot.Levels, at corral.Seconds) float64 {
	for int(*c) < len(l) && l[*c].From <= at {
		*c++
	}
	if *c == 0 {
		return 0
	}
	return l[*c-1].CPUs
}

// ganttOf returns the schedule: each worker's tasks, in as many lanes as the worker ran tasks at once.
func ganttOf(r *RunReport, all []stay) plot.Gantt {
	g := plot.Gantt{Title: fmt.Sprintf("Run %d: %s", r.Run, r.Workflow), End: r.Span}
	for _, k := range r.Kinds {
		g.Kinds = append(g.Kinds, k.Name)
	}
	return lanesOf(g, all)
}

// lanesOf adds lanes to a chart, and a subtitle with the number of lanes.
func lanesOf(g plot.Gantt, all []stay) plot.Gantt {
	kinds := map[string]int{}
	for i, name := range g.Kinds {
		kinds[name] = i
	}
	names := map[string]string{}      // :: worker → the worker's name in the chart
	lanes := map[string][]plot.Lane{} // :: worker → its lanes
	var order []string                // order of the workers
	for _, x := range all {           // in the order of their starts
		if names[x.worker] == "" {
			names[x.worker] = fmt.Sprintf("worker %d", len(names)+1)
			order = append(order, x.worker)
		}
		kind, known := kinds[x.kind]
		if !known { // no task of this kind has ended
			kind, kinds[x.kind] = len(g.Kinds), len(g.Kinds)
			g.Kinds = append(g.Kinds, x.kind)
		}
		of := lanes[x.worker]
		k := slices.IndexFunc(of, func(l plot.Lane) bool { return l.Bars[len(l.Bars)-1].To <= x.From })
		if k < 0 {
			k, of = len(of), append(of, plot.Lane{Name: names[x.worker]})
		}
		of[k].Bars = append(of[k].Bars, plot.Bar{From: x.From, To: x.To, Kind: kind})
		lanes[x.worker] = of
	}
	for _, worker := range order {
		g.Lanes = append(g.Lanes, lanes[worker]...)
	}
	g.Subtitle = fmt.Sprintf("%d tasks on %d workers in %s", len(all), len(order), plot.Brief(g.End))
	if n := len(g.Lanes) - g.Shown(); n > 0 {
		g.Subtitle += fmt.Sprintf("; %d more lanes are not shown", n)
	}
	return g
}

// Figures returns the pictures of the page.
func (r *RunReport) Figures() []plot.Figure { return r.figures }
