package execution

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// anyRecord draws a record that may belong to any run, with invalid numbers and unknown jobs.
func anyRecord(t *rapid.T) Record {
	seq, small := rapid.Int64Range(-1, 6), rapid.Int32Range(-1, 5)
	worker := rapid.SampledFrom([]string{"", "w1", "w2"})
	parts := func() (parts []Part) {
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			parts = append(parts, Part{small.Draw(t, "task"), small.Draw(t, "attempt")})
		}
		return parts
	}
	at := Msec(rapid.Int64Range(0, 1e6).Draw(t, "at"))
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1, 2:
		return Record{At: at, Assigned: &Assignment{seq.Draw(t, "seq"), worker.Draw(t, "worker"), parts(), int(seq.Draw(t, "memory"))}}
	case 3:
		seqs := rapid.SliceOfN(seq, 0, 3).Draw(t, "seqs")
		return Record{At: at, Returned: &Giveback{Seqs: seqs, Started: rapid.Bool().Draw(t, "started")}}
	case 4:
		return Record{At: at, Gap: &Gap{Seq: seq.Draw(t, "seq"), Floors: parts()}}
	case 5:
		return Record{At: at, Met: &Meeting{worker.Draw(t, "worker"), 2}, CPUs: 2}
	case 6:
		return Record{At: at, Resumed: true}
	case 7:
		return Record{At: at, Retried: rapid.SliceOfN(small, 0, 3).Draw(t, "retried")}
	case 8:
		return Record{At: at, Cancelled: &Cancellation{Tasks: rapid.SliceOfN(small, 0, 3).Draw(t, "cancelled"), Why: "?",
			Await: rapid.Bool().Draw(t, "await")}}
	}
	status := rapid.SampledFrom([]Status{Done, Done, Done, Failed, Cut, Cancelled, "?"})
	return Record{At: at, Finished: &Outcome{
		Seq: seq.Draw(t, "seq"), Task: small.Draw(t, "task"), Attempt: small.Draw(t, "attempt"),
		Status: status.Draw(t, "status"), Worker: worker.Draw(t, "worker"), Started: at / 2, Ended: at,
	}}
}

// check checks the invariants of an execution.
func check(t *rapid.T, x *Execution) {
	inJobs := 0
	for seq, j := range x.jobs.bySeq {
		left := x.jobs.remaining(j)
		inJobs += len(left)
		if seq != j.seq || seq >= x.jobs.nextSeq || int(j.left) != len(left) || j.left == 0 {
			t.Fatalf("job %d: seq %d, next %d, left %d of %d", seq, j.seq, x.jobs.nextSeq, j.left, len(left))
		}
	}
	var count [states]int
	for i := range x.units.tasks {
		u := &x.units.tasks[i]
		count[u.state]++
		if u.job != nil {
			inJobs--
		}
		fits := false
		switch u.state {
		case StateWaiting:
			fits = u.job == nil || x.plan.inner && !u.assigned()
		case StatePreparing, StateJudging, StateDone, StateFailed, StateSkipped:
			fits = u.job == nil
		case StateReady:
			fits = !u.assigned()
		case StateBehind, StateRunning:
			fits = u.assigned() && x.jobs.bySeq[u.job.seq] == u.job
		}
		if blocked := u.state == StateBehind || u.state == StateWaiting; !fits || !u.state.over() && blocked != (u.pending > 0) {
			t.Fatalf("task %d is %s in job %+v with %d parents to wait for", i, u.state, u.job, u.pending)
		}
	}
	if inJobs != 0 || count != x.units.count {
		t.Fatalf("%d tasks too many in jobs, counts %v, want %v", inJobs, x.units.count, count)
	}
}

// A journal may be damaged in a way that its checksums do not show, or belong to another workflow. In any case the
// execution remains consistent, and the tasks that it releases are ready and not in another job.
func TestAnyRecordKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		tasks := slices.Repeat([]TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Second, Retries: 1}}, 4)
		clusters := rapid.SampledFrom([][][]int{nil, {{0}, {1, 2}, {3}}, {{0, 2}, {1, 3}}, {{0, 1, 2, 3}}}).Draw(t, "clusters")
		x := New(Spec{Graph: g, Tasks: tasks, Clusters: clusters})
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			x.Apply(anyRecord(t))
			check(t, x)
			if rapid.Bool().Draw(t, "release") {
				x.Release(time.UnixMilli(rapid.Int64Range(0, 1e6).Draw(t, "now")), Offer{})
				x.Shortage(Offer{})
				check(t, x)
			}
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 60, 60}
	for failures, s := range want {
		if got := backoff(int32(failures)); got != s*time.Second {
			t.Errorf("backoff(%d) = %s, want %d s", failures, got, s)
		}
	}
	if got := backoff(1 << 30); got != time.Minute {
		t.Errorf("backoff(many) = %s", got)
	}
}

// A task waits exactly until the end of its back-off, even if the clock is set back meanwhile.
func TestClockSetBackHoldsNothing(t *testing.T) {
	t.Parallel()
	const now, minute = Msec(1 << 40), 60_000
	for _, tt := range []struct {
		end  Msec // of the back-off
		want int
	}{{now, 1}, {now + minute, 0}, {now + minute + 1, 1}, {now + 60*minute, 1}} {
		g, err := dag.New(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := New(Spec{Graph: g, Tasks: []TaskSpec{{ID: "one", CPUs: 1, Estimate: time.Second}}})
		x.frontier.loose = nil
		x.frontier.again(0, tt.end-minute, time.Minute)
		if got := len(x.Release(now.Time(), Offer{})); got != tt.want {
			t.Errorf("%d jobs are released that are due in %s, want %d", got, tt.end.sub(now), tt.want)
		}
	}
}

// Tasks are released when their back-offs end, those that end together in the order of the workflow. If the clock was
// set back, only those are released that end later than any back-off could.
func TestBackoffsEndInOrder(t *testing.T) {
	t.Parallel()
	const now = Msec(1 << 40)
	for _, tt := range []struct {
		name  string
		waits []time.Duration // of the tasks
		after time.Duration
		want  []int // the tasks that are released
		next  time.Duration
	}{
		{"too early", []time.Duration{3, 1, 1, 2}, time.Second - 1, nil, time.Second},
		{"the first two", []time.Duration{3, 1, 1, 2}, time.Second, []int{1, 2}, 2 * time.Second},
		{"all but one", []time.Duration{3, 1, 1, 2}, 2 * time.Second, []int{1, 2, 3}, 3 * time.Second},
		{"all", []time.Duration{3, 1, 1, 2}, 3 * time.Second, []int{1, 2, 3, 0}, 0},
		{"none, although the clock was set back", []time.Duration{61, 60, 61}, time.Second, nil, time.Minute},
		{"of before the clock was set back", []time.Duration{61, 60, 61}, 0, []int{0, 2}, time.Minute},
	} {
		x := New(Spec{Graph: graph(t, len(tt.waits)), Tasks: slices.Repeat([]TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Second}}, len(tt.waits))})
		x.frontier.loose = nil
		for i, wait := range tt.waits {
			x.frontier.again(int32(i), now, wait*time.Second)
		}
		var got []int
		for _, j := range x.Release(now.Time().Add(tt.after), Offer{}) {
			got = append(got, j.Tasks[0].Index)
		}
		next, ok := x.Next()
		if !slices.Equal(got, tt.want) || ok != (tt.next > 0) || ok && !next.Equal(now.Time().Add(tt.next)) {
			t.Errorf("%s: %v are released, and the next at %s, want %v, and after %s", tt.name, got, next, tt.want, tt.next)
		}
	}
}

// The number of a job is never used again, even if nothing in the job counts any more.
func TestNumbersOfStaleJobsAreSkipped(t *testing.T) {
	t.Parallel()
	x := New(Spec{Graph: graph(t, 1), Tasks: []TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Second}}})
	x.Apply(Record{At: 1, Assigned: &Assignment{Seq: 7, Worker: "w", Parts: []Part{{Task: 0, Attempt: 9}}}})
	if jobs := x.Release(time.Unix(1e9, 0), Offer{}); len(jobs) != 1 || jobs[0].Seq != 8 {
		t.Errorf("after job 7, %+v is released", jobs)
	}
}

// Removing the reason of a task's last attempt keeps the task's other properties. A task without properties has no
// extra, because there may be a million tasks.
func TestReasonLeavesTheRest(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*extra){
		"nothing":        func(*extra) {},
		"cause":          func(e *extra) { e.cause = OverTime },
		"inputs":         func(e *extra) { e.changed = []string{"in"} },
		"estimate":       func(e *extra) { e.longest = time.Hour },
		"memory":         func(e *extra) { e.exceeded = 1 },
		"attempts":       func(e *extra) { e.floor = 3 },
		"lost workers":   func(e *extra) { e.losses = 1 },
		"a cancellation": func(e *extra) { e.cancel.is = true },
	} {
		us := newUnits(newPlan(Spec{Graph: graph(t, 1), Tasks: []TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Second}}}))
		var want extra
		set(&want)
		set(us.grant(0))
		us.explain(0, "why")
		us.explain(0, "")
		if got := *us.extra(0); !reflect.DeepEqual(got, want) || (len(us.extras) == 0) != (name == "nothing") {
			t.Errorf("%s: %+v, want %+v; %d tasks with extras", name, got, want, len(us.extras))
		}
	}
}

// POST scripts learn how a process ended as DAGMan's do.
func TestStatusOfOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    Outcome
		want int
	}{
		{Outcome{Status: Done}, 0},
		{Outcome{Status: Failed, Exit: 3}, 3},
		{Outcome{Status: Failed}, -1},
		{Outcome{Status: Failed, Exit: 129, Signal: "SIGHUP"}, -1},
		{Outcome{Status: Failed, Exit: 137, Signal: "SIGKILL"}, -9},
		{Outcome{Status: Failed, Signal: "signal 34"}, -34},
		{Outcome{Status: Failed, Exit: 3, Signal: "?"}, -1},
	} {
		if got := tt.o.status(); got != tt.want {
			t.Errorf("status of %+v = %d, want %d", tt.o, got, tt.want)
		}
	}
}

func TestUnitSize(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[unit]().Size(); size > 80 {
		t.Errorf("the state of a task has %d bytes, want at most 80: there may be hundreds of thousands", size)
	}
}

// A worker's report that an attempt used too much memory appears in the record, in the task's state until another
// attempt ends, and in the report of the run.
func TestKilledForItsMemory(t *testing.T) {
	t.Parallel()
	g, err := dag.New(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := New(Spec{Graph: g, Tasks: []TaskSpec{{ID: "big", CPUs: 1, Estimate: time.Second, Retries: 1}}})
	at := time.UnixMilli(1e9).UTC()
	for attempt, r := range []Result{
		{Status: Failed, Cause: OverMemory, Reason: "used 612 MiB of the 300 MiB it may have", Usage: Usage{MaxRSSKiB: 612 << 10}},
		{Status: Done},
	} {
		r.Key, r.Attempt, r.Worker = Key{1, int64(attempt + 1)}, attempt+1, "w"
		r.StartedAt, r.EndedAt = at, at.Add(time.Second)
		x.Apply(Record{At: ToMsec(r.EndedAt), Finished: ToOutcome(r)})
		if got := x.Task(0); got.Cause != r.Cause || got.Reason != r.Reason || got.MaxRSSKiB != r.MaxRSSKiB {
			t.Errorf("after attempt %d: %+v", attempt+1, got)
		}
	}
	if got := x.Report(at); got.MemoryKills != 1 || got.RetriesUsed != 1 || got.LargerRetries != 1 {
		t.Errorf("report = %+v", got)
	}
}

// A worker that was silent until its lease ended had its tasks only while it was present: the lost work is the time for
// which they ran, not the wait. A record without that time, from an older corrald, counts until the record.
func TestLostWorkUntilTheWorkerWasThere(t *testing.T) {
	t.Parallel()
	for until, want := range map[Msec]time.Duration{0: 27 * time.Second, 11_000: 10 * time.Second, 500: 0, 99_000: 27 * time.Second} {
		g, err := dag.New(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := New(Spec{Graph: g, Tasks: []TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Minute}}})
		x.Apply(Record{At: 1000, Assigned: &Assignment{Seq: 1, Worker: "w", Parts: []Part{{0, 1}}}})
		x.Apply(Record{At: 28_000, Returned: &Giveback{Seqs: []int64{1}, Started: true, Until: until}})
		if got := x.tally.lost; got != want {
			t.Errorf("until %d ms: %s is lost, want %s", until, got, want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	worker := corral.Resources{CPUs: 4, MemoryMiB: 1000}
	for _, c := range []struct {
		job    Job
		worker corral.Resources
		want   int
		asked  bool
	}{
		{Job{CPUs: 1, MemoryMiB: 600}, worker, 600, true},
		{Job{CPUs: 1}, worker, 250, false},
		{Job{CPUs: 3}, worker, 750, false},
		{Job{}, worker, 250, false},
		{Job{CPUs: 9}, worker, 1000, false},
		{Job{CPUs: 1}, corral.Resources{}, 0, false},
		{Job{CPUs: 1, MemoryMiB: 600}, corral.Resources{}, 600, true},
	} {
		if got, asked := c.job.MemoryLimit(c.worker); got != c.want || asked != c.asked {
			t.Errorf("%+v on %+v: %d, %v, want %d, %v", c.job, c.worker, got, asked, c.want, c.asked)
		}
	}
}

// The state of a task that a worker has describes the current attempt, not the previous one.
func TestTimesOfATaskThatRuns(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0).UTC()
	at := start.Add(time.Minute)
	g, err := dag.New(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := New(Spec{Graph: g, Tasks: []TaskSpec{
		{ID: "a", CPUs: 1, Estimate: time.Second, Retries: 1}}})
	give := func(attempt int32, seq int64, at time.Time) {
		x.Apply(Record{At: ToMsec(at), Assigned: &Assignment{Seq: seq, Worker: "w",
			Parts: []Part{{Attempt: attempt}}}})
	}
	give(1, 1, start)
	if got := x.Task(0); !got.StartedAt.Equal(start) || !got.EndedAt.IsZero() {
		t.Errorf("the first attempt: %s to %s, want from %s on", got.StartedAt, got.EndedAt, start)
	}
	x.Apply(Record{At: ToMsec(at), Finished: &Outcome{Seq: 1, Attempt: 1, Worker: "w",
		Status: Failed, Exit: 3, Started: ToMsec(start), Ended: ToMsec(at)}})
	if got := x.Task(0); !got.EndedAt.Equal(at) {
		t.Errorf("before the second attempt it has ended at %s, want %s", got.EndedAt, at)
	}
	give(2, 2, at.Add(time.Minute))
	if got := x.Task(0); !got.StartedAt.Equal(at.Add(time.Minute)) || !got.EndedAt.IsZero() {
		t.Errorf("the second attempt: %s to %s", got.StartedAt, got.EndedAt)
	}
}
