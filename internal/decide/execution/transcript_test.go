package execution_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// TestTranscripts plays complete runs from testdata/*.txt. Each command is one event or one query, and the text after
// ---- is the answer. Times are relative to the beginning of the run; at=TIME advances the clock. To rewrite the
// answers, use -rewrite, and review the changes.
//
//	spec           the workflow: a line for each task, ID [after=(ID, …)] [cpus=N] [memory=MIB] [time=T] [retries=N] and
//	               its rules, see ruled; limits=(CATEGORY:N, …), losses=N, and subs=(NAME:FIRST-LAST[:RULES …], …)
//	               groups=N: each level becomes N jobs; jobs=(ID+ID, …): these tasks become one
//	add            tasks for an execution whose spec is open: a line for each addition, NAME [count=N] [at-once=N] [retries=N]
//	               [once] [after=(WHEN:NUMBER, …)]; answers their numbers, which are their ids
//	close          closes an open execution
//	offer          the cluster's workers from now on: a line for each, ID or "requested"; answers the news
//	release        answers the jobs released now, and the time of the next release
//	cancel, retry  requests about tasks; answers the jobs that are over as a result, and those to be killed
//	assign, finish, return, resume   events; answers the jobs that are over as a result
//	misfits        jobs of which only some tasks could still run
//	scripts, script   the scripts to start, at most most=N; the end of a unit's script
//	verdict        the outcome of the workflow
//	shortage       the lacks of tasks, and whether anything runs or could
//	ends           the time at which everything is expected to be over, if known
//	restart        replays the journal, or the rest of it, and compares; answers the workers that are awaited
//	state, report, journal           the progress
func TestTranscripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, path := range paths {
		r := &transcript{clock: start}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var at string
			if d.MaybeScanArgs(t, "at", &at); at != "" {
				r.clock = start.Add(duration(t, at))
			}
			r.out.Reset()
			r.play(t, d)
			return r.out.String()
		})
	}
}

// start is the time at which the runs of transcripts begin.
var start = time.Unix(1e9, 0)

type transcript struct {
	clock   time.Time
	spec    execution.Spec
	index   map[string]int // :: task id → index; subworkflows follow the tasks
	x       *execution.Execution
	offer   execution.Offer
	journal []execution.Record
	parts   map[int64][]execution.Part // of released jobs
	more    map[int64]int              // :: released job → its memory, if it is more than the workflow requests

	categories map[string]int   // :: name → its number in rules
	workers    map[int64]string // :: job → the worker to which it was last assigned
	out        bytes.Buffer
}

func (r *transcript) play(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "spec":
		r.begin(t, d)
	case "add":
		r.add(t, d)
	case "close":
		r.apply(execution.Record{Closed: true})
	case "offer":
		r.look(t, d)
	case "release":
		r.release()
	case "assign":
		var seq int64
		var worker string
		d.ScanArgs(t, "job", &seq)
		d.ScanArgs(t, "to", &worker)
		r.workers[seq] = worker
		r.apply(execution.Record{Assigned: &execution.Assignment{Seq: seq, Worker: worker, Parts: r.parts[seq], More: r.more[seq]}})
	case "finish":
		r.finish(t, d)
	case "return":
		back := &execution.Giveback{Started: d.HasArg("started")}
		jobs, _ := d.Arg("jobs")
		for _, seq := range jobs.Vals {
			n, err := strconv.ParseInt(seq, 10, 64)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			back.Seqs = append(back.Seqs, n)
		}
		if back.Started {
			back.Reason = "its worker was lost"
		}
		r.apply(execution.Record{Returned: back})
	case "scripts":
		r.scripts(t, d)
	case "script":
		r.script(t, d)
	case "verdict":
		v := execution.VerdictOf(r.x)
		fmt.Fprintf(&r.out, "exit status %d\n%s", v.Status, line(v.Abort))
		for _, i := range v.Tasks {
			fmt.Fprintf(&r.out, "task %s failed: %s\n", r.spec.Tasks[i].ID, r.x.Task(i).Reason)
		}
		for _, s := range v.Subs {
			fmt.Fprintf(&r.out, "subworkflow %s failed: %s\n", s.Name, s.Why)
		}
	case "resume":
		r.apply(execution.Record{Resumed: true})
	case "misfits":
		misfits, _ := execution.Misfits(r.x, r.offer)
		fmt.Fprintln(&r.out, misfits)
	case "cancel":
		r.apply(execution.Record{Cancelled: &execution.Cancellation{Tasks: r.chosen(t, d), Why: "cancelled by ann"}})
	case "retry":
		r.apply(execution.Record{Retried: r.chosen(t, d)})
	case "shortage":
		short := r.x.Shortage(r.offer)
		fmt.Fprintf(&r.out, "able: %v\n%s", short.Able, line(short.What))
	case "ends":
		if end, ok := r.x.Ends(r.clock, r.offer.CPUs); ok {
			fmt.Fprintf(&r.out, "in %s\n", end.Sub(r.clock))
		}
	case "restart":
		r.restart(t, d)
	case "state":
		r.state()
	case "report":
		r.report()
	case "journal":
		for _, rec := range r.journal {
			text, err := json.Marshal(rec)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			fmt.Fprintf(&r.out, "%s\n", text)
		}
	default:
		d.Fatalf(t, "no such command")
	}
}

// chosen returns the tasks that a command names, unless the request for them is refused.
func (r *transcript) chosen(t *testing.T, d *datadriven.TestData) []int32 {
	named, _ := d.Arg("tasks")
	var tasks []int
	for _, id := range named.Vals {
		tasks = append(tasks, r.index[id])
	}
	may := execution.Retriable
	if d.Cmd == "cancel" {
		may = execution.Cancellable
	}
	chosen, err := may(r.x, tasks)
	if err != nil {
		fmt.Fprintln(&r.out, err)
	}
	return chosen
}

func (r *transcript) begin(t *testing.T, d *datadriven.TestData) {
	r.index, r.parts, r.workers = map[string]int{}, map[int64][]execution.Part{}, map[int64]string{}
	r.more = map[int64]int{}
	var groups int
	d.MaybeScanArgs(t, "groups", &groups)
	d.MaybeScanArgs(t, "losses", &r.spec.Losses)
	r.categories = map[string]int{}
	limits, _ := d.Arg("limits")
	for _, l := range limits.Vals {
		name, most, _ := strings.Cut(l, ":")
		n, err := strconv.Atoi(most)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		r.spec.Limits = append(r.spec.Limits, n)
		r.categories[name] = len(r.spec.Limits)
	}
	if r.spec.Open = d.HasArg("open"); r.spec.Open {
		r.spec, r.journal = execution.Spec{Open: true}, nil
		r.x = execution.New(r.spec)
		return
	}
	var edges [][2]int
	for i, l := range strings.Split(d.Input, "\n") {
		id, args, err := datadriven.ParseLine(l)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		task := execution.TaskSpec{ID: id, CPUs: 1, MemoryMiB: 100, Estimate: 10 * time.Second}
		for _, a := range args {
			switch a.Key {
			case "after":
				for _, parent := range a.Vals {
					edges = append(edges, [2]int{r.index[parent], i})
				}
			case "cpus":
				a.Scan(t, 0, &task.CPUs)
			case "memory":
				a.Scan(t, 0, &task.MemoryMiB)
			case "kind":
				a.Scan(t, 0, &task.Kind)
			case "time":
				task.Estimate = duration(t, a.SingleVal(t))
			case "retries":
				a.Scan(t, 0, &task.Retries)
			case "done":
				task.Done = true
			default:
				task.Rules = r.ruled(t, task.Rules, a.Key, a.Vals)
			}
		}
		r.index[id] = i
		r.spec.Tasks = append(r.spec.Tasks, task)
	}
	g, err := dag.New(len(r.spec.Tasks), edges)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	r.spec.Graph = g
	if groups > 0 {
		r.spec.Clusters = byLevel(r.spec, groups)
	}
	if jobs, ok := d.Arg("jobs"); ok {
		r.spec.Clusters = r.named(jobs.Vals)
	}
	r.addSubs(t, d)
	if err := r.spec.Check(); err != nil {
		fmt.Fprintf(&r.out, "%v\n", err)
		return
	}
	r.x = execution.New(r.spec)
}

// add adds tasks to an open execution.
func (r *transcript) add(t *testing.T, d *datadriven.TestData) {
	for l := range strings.SplitSeq(d.Input, "\n") {
		_, args, err := datadriven.ParseLine(l)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		a := execution.Addition{
			First: int32(execution.Size(r.x)), Count: 1, Needs: corral.Resources{CPUs: 1, MemoryMiB: 100}, Estimate: 10_000,
		}
		for _, arg := range args {
			switch arg.Key {
			case "count":
				arg.Scan(t, 0, &a.Count)
			case "at-once":
				arg.Scan(t, 0, &a.AtOnce)
			case "retries":
				arg.Scan(t, 0, &a.Retries)
			case "once":
				a.Once = true
			case "after":
				for _, w := range arg.Vals {
					when, number, _ := strings.Cut(w, ":")
					n, err := strconv.Atoi(number)
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					a.After = append(a.After, execution.Condition{Task: int32(n - 1), When: execution.When(when)})
				}
			default:
				d.Fatalf(t, "what is %s", arg.Key)
			}
		}
		r.apply(execution.Record{Added: &a})
		for i := int(a.First); i < execution.Size(r.x); i++ {
			id := execution.TaskID(i)
			r.index[id] = i
			r.spec.Tasks = append(r.spec.Tasks, execution.TaskSpec{ID: id})
			fmt.Fprintf(&r.out, "%s ", id)
		}
	}
}

// byLevel divides the tasks of a level with the same needs among the given number of jobs.
func byLevel(s execution.Spec, groups int) [][]int {
	kinds := make([]int, len(s.Tasks))
	for i, t := range s.Tasks {
		kinds[i] = t.CPUs<<20 + t.MemoryMiB
	}
	return dag.ByLevel(s.Graph, groups, kinds)
}

// named puts tasks that are named together into one job, and each of the others into a separate job.
func (r *transcript) named(jobs []string) (all [][]int) {
	in := map[int]bool{}
	for _, job := range jobs {
		var tasks []int
		for id := range strings.SplitSeq(job, "+") {
			tasks = append(tasks, r.index[id])
			in[r.index[id]] = true
		}
		all = append(all, tasks)
	}
	for i := range r.spec.Tasks {
		if !in[i] {
			all = append(all, []int{i})
		}
	}
	return all
}

func (r *transcript) look(t *testing.T, d *datadriven.TestData) {
	r.offer = execution.Offer{}
	for l := range strings.FieldsFuncSeq(d.Input, func(c rune) bool { return c == '\n' }) {
		worker, args, err := datadriven.ParseLine(l)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c := execution.Capacity{Worker: worker, CPUs: 1, MemoryMiB: 1000, Left: time.Hour}
		for _, a := range args {
			switch a.Key {
			case "cpus":
				a.Scan(t, 0, &c.CPUs)
			case "memory":
				a.Scan(t, 0, &c.MemoryMiB)
			case "left":
				c.Left = duration(t, a.SingleVal(t))
			}
		}
		if worker == "requested" {
			c.Worker = ""
		} else {
			r.offer.CPUs += c.CPUs
		}
		r.offer.Capacities = append(r.offer.Capacities, c)
	}
	for _, news := range r.x.News(r.clock, r.offer) {
		if news.Met != nil {
			fmt.Fprintf(&r.out, "met %s: %d cpus\n", news.Met.Worker, news.Met.CPUs)
		} else {
			fmt.Fprintf(&r.out, "most cpus so far: %d\n", news.CPUs)
		}
		r.apply(news)
	}
}

// apply applies a record and writes it to the journal.
func (r *transcript) apply(rec execution.Record) {
	rec.At = execution.ToMsec(r.clock)
	r.journal = append(r.journal, rec)
	for _, seq := range r.x.Apply(rec) {
		fmt.Fprintf(&r.out, "job %d is over\n", seq)
	}
	if kills := execution.Kills(r.x); len(kills) > 0 {
		fmt.Fprintf(&r.out, "to be killed: %v\n", kills)
	}
	for _, unit := range execution.UnwantedScripts(r.x) {
		fmt.Fprintf(&r.out, "script of %s is to be killed\n", r.unit(unit))
	}
}

func (r *transcript) release() {
	table := tabwriter.NewWriter(&r.out, 0, 0, 2, ' ', 0)
	for _, j := range r.x.Release(r.clock, r.offer) {
		r.parts[j.Seq] = nil
		if j.More {
			r.more[j.Seq] = j.MemoryMiB
		}
		for _, task := range j.Tasks {
			part := execution.Part{Task: int32(task.Index), Attempt: int32(task.Attempt)}
			r.parts[j.Seq] = append(r.parts[j.Seq], part)
		}
		fmt.Fprintf(table, "job %d\t%s\tcpus %d\tneeds %s\trank %gs", j.Seq, attempts(j), j.CPUs, j.Estimate(), j.Priority)
		if j.Ordered {
			fmt.Fprintf(table, "\tin order, %d MiB", j.MemoryMiB)
		}
		if j.Class != 0 {
			fmt.Fprintf(table, "\tpriority %d", j.Class)
		}
		if j.MemoryMiB != 100 && !j.Ordered {
			fmt.Fprintf(table, "\tmemory %d MiB", j.MemoryMiB)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	if at, ok := r.x.Next(); ok {
		fmt.Fprintf(&r.out, "next at %s\n", at.Sub(start))
	}
}

// attempts lists the tasks of a job with the numbers of their attempts, in the form of directory names.
func attempts(j execution.Job) string {
	var names []string
	for _, t := range j.Tasks {
		names = append(names, fmt.Sprintf("%s.%d", t.ID, t.Attempt))
	}
	return strings.Join(names, " ")
}

func (r *transcript) finish(t *testing.T, d *datadriven.TestData) {
	var seq int64
	var id, ran string
	status, why := string(execution.Done), ""
	d.ScanArgs(t, "job", &seq)
	d.ScanArgs(t, "task", &id)
	d.ScanArgs(t, "ran", &ran)
	d.MaybeScanArgs(t, "status", &status)
	exit, signal, cause, rss := 1, "", "", 0
	d.MaybeScanArgs(t, "exit", &exit)
	d.MaybeScanArgs(t, "signal", &signal)
	d.MaybeScanArgs(t, "cause", &cause)
	d.MaybeScanArgs(t, "rss", &rss)
	d.MaybeScanArgs(t, "why", &why)
	task := int32(r.index[id])
	k := slices.IndexFunc(r.parts[seq], func(p execution.Part) bool { return p.Task == task })
	if k < 0 {
		d.Fatalf(t, "task %s is not in job %d", id, seq)
	}
	o := &execution.Outcome{
		Seq: seq, Task: task, Attempt: r.parts[seq][k].Attempt, Status: execution.Status(status), Reason: why,
		Worker: r.workers[seq], Ended: execution.ToMsec(r.clock), Started: execution.ToMsec(r.clock.Add(-duration(t, ran))),
	}
	o.RSSKiB = int64(rss) << 10
	if status == string(execution.Failed) {
		o.Exit, o.Signal, o.Cause = exit, signal, execution.Cause(cause)
	}
	r.apply(execution.Record{Finished: o})
}

// restart replays the journal, which must restore the execution except the jobs that no worker has. With keep=N, only
// that many records remain; floors=(ID.ATTEMPT, …) lists the attempts found on disk.
func (r *transcript) restart(t *testing.T, d *datadriven.TestData) {
	before := r.x
	var keep int
	damaged := d.MaybeScanArgs(t, "keep", &keep)
	if damaged {
		r.journal = r.journal[:keep]
	}
	spec := r.spec
	if spec.Open { // added tasks are in the journal
		spec.Tasks = nil
	}
	r.x = execution.New(spec)
	for _, rec := range r.journal {
		r.x.Apply(rec)
	}
	if damaged {
		floors, _ := d.Arg("floors")
		var parts []execution.Part
		for _, f := range floors.Vals {
			id, attempt, _ := strings.Cut(f, ".")
			n, err := strconv.Atoi(attempt)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			parts = append(parts, execution.Part{Task: int32(r.index[id]), Attempt: int32(n)})
		}
		r.apply(execution.Record{Gap: r.x.Gap(parts)})
		r.spec.Tasks = r.spec.Tasks[:execution.Size(r.x)]
	} else if diff := cmp.Diff(lasting(r.spec, before), lasting(r.spec, r.x)); diff != "" {
		d.Fatalf(t, "the replayed execution differs (-live +replayed):\n%s", diff)
	}
	expected := r.x.Expected()
	for _, worker := range slices.Sorted(maps.Keys(expected)) {
		for _, j := range expected[worker] {
			fmt.Fprintf(&r.out, "%s may have job %d: %s\n", worker, j.Seq, attempts(j))
		}
	}
}

func (r *transcript) state() {
	table := tabwriter.NewWriter(&r.out, 0, 0, 2, ' ', 0)
	for i, task := range r.spec.Tasks {
		info := r.x.Task(i)
		fmt.Fprintf(table, "%s\t%s\tattempts %d\t%s\t%s\n", task.ID, info.State, info.Begun, info.Worker, info.Reason)
	}
	_ = table.Flush()
	text := strings.Split(r.out.String(), "\n")
	r.out.Reset()
	for _, l := range text {
		r.out.WriteString(line(strings.TrimRight(l, " ")))
	}
	if r.x.Done() {
		r.out.WriteString("nothing is left to run\n")
	}
}

func (r *transcript) report() {
	rep := r.x.Report(start)
	s := func(d interface{ Seconds() float64 }) string { return fmt.Sprintf("%gs", d.Seconds()) }
	fmt.Fprintf(&r.out, "makespan %s, tasks took %s, most cpus %d\n",
		s(time.Duration(rep.Makespan)), s(time.Duration(rep.TaskTime)), rep.CPUs)
	fmt.Fprintf(&r.out, "critical path %s, lower bound %s, list schedule %s\n",
		s(time.Duration(rep.CriticalPath)), s(time.Duration(rep.LowerBound)), s(time.Duration(rep.ListSchedule)))
	fmt.Fprintf(&r.out, "lost %s, requeued %d, retries %d\n", s(time.Duration(rep.LostWork)), rep.Requeued, rep.RetriesUsed)
}

// line adds a newline to a text that is not empty.
func line(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n"
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
