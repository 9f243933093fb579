package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/internal/execution"
)

func mustOptions(clustering string) corral.RunOptions {
	return corral.RunOptions{Clustering: clustering, Retries: 2}
}

// checkState checks what always holds of a state.
func checkState(t interface{ Fatalf(string, ...any) }, s *state) {
	inJobs, running := 0, 0
	for seq, j := range s.jobs {
		left := s.remaining(j)
		inJobs += len(left)
		if j.worker != 0 {
			running += len(left)
		}
		if seq != j.seq || seq >= s.nextSeq || j.left != len(left) || j.left == 0 {
			t.Fatalf("job %d: seq %d, next %d, left %d of %d", seq, j.seq, s.nextSeq, j.left, len(left))
		}
	}
	for i, task := range s.tasks {
		if task.job != nil && (s.frontier.State(i) != dag.Ready || s.jobs[task.job.seq] != task.job) {
			t.Fatalf("task %d is %s in a job", i, s.frontier.State(i))
		}
		inJobs -= map[bool]int{true: 1}[task.job != nil]
	}
	c := s.counts()
	if sum := c.Waiting + c.Ready + c.Running + c.Done + c.Failed + c.Skipped; inJobs != 0 || running != s.running || sum != c.Total || c.Ready < 0 {
		t.Fatalf("%d tasks too many in jobs, %d running (told %d), counts %+v", inJobs, running, s.running, c)
	}
}

// A machine drives a state with what a cluster could tell, and keeps what it told as the journal.
type machine struct {
	s       *state
	journal []record
	clock   msec
	queued  []*job
	ran     map[part]bool // attempts that may have been running
	done    map[int32]bool
}

func (m *machine) tell(r record) {
	m.clock++
	r.At = m.clock
	m.s.apply(r)
	m.journal = append(m.journal, r)
}

func (m *machine) release(t *rapid.T) {
	m.clock += msec(time.Minute.Milliseconds()) // over any back-off
	for _, j := range m.s.release(m.clock, Supply{}) {
		for _, p := range j.parts {
			if m.done[p.Task] || m.ran[p] {
				t.Fatalf("task %d is released again as attempt %d", p.Task, p.Attempt)
			}
			for _, parent := range m.s.plan.graph.Parents(int(p.Task)) {
				if !m.done[int32(parent)] {
					t.Fatalf("task %d is released before its parent %d is done", p.Task, parent)
				}
			}
		}
		m.queued = append(m.queued, j)
	}
}

func (m *machine) assign(t *rapid.T) {
	k := rapid.IntRange(0, len(m.queued)-1).Draw(t, "queued")
	j := m.queued[k]
	m.queued = slices.Delete(m.queued, k, k+1)
	m.tell(record{Assigned: &assignment{Seq: j.seq, Worker: fmt.Sprintf("w%d", k%3), Parts: j.parts}})
	if rapid.IntRange(0, 4).Draw(t, "handed back") == 0 { // the cluster gives it to another, and tells only that
		m.tell(record{Assigned: &assignment{Seq: j.seq, Worker: "other", Parts: j.parts}})
	}
	for _, p := range j.parts {
		m.ran[p] = true
	}
}

func (m *machine) held() []*job {
	var held []*job
	for _, jobs := range m.s.expected() {
		held = append(held, jobs...)
	}
	slices.SortFunc(held, func(a, b *job) int { return int(a.seq - b.seq) })
	return held
}

func (m *machine) finish(t *rapid.T, j *job) {
	task := m.s.remaining(j)[0]
	status := rapid.SampledFrom([]execution.Status{execution.Done, execution.Done, execution.Done, execution.Failed, execution.Cut, execution.Cancelled}).Draw(t, "status")
	r := record{Finished: &outcome{
		Seq: j.seq, Task: task, Attempt: m.s.tasks[task].attempt, Status: status,
		Worker: m.s.workers.all[j.worker].name, Started: m.clock, Ended: m.clock + 7,
	}}
	m.done[task] = m.done[task] || status == execution.Done
	m.tell(r)
	if rapid.Bool().Draw(t, "repeated") {
		before := m.s.counts()
		m.tell(r)
		if after := m.s.counts(); after != before {
			t.Fatalf("a repeated result changed the counts from %+v to %+v", before, after)
		}
	}
}

func (m *machine) giveBack(t *rapid.T, j *job) {
	started := rapid.Bool().Draw(t, "started")
	if !started {
		for _, p := range j.parts {
			delete(m.ran, p)
		}
	}
	m.tell(record{Returned: &giveback{Seqs: []int64{j.seq}, Started: started, Reason: "lost"}})
}

// restart replaces the state by one that is replayed from the journal.
func (m *machine) restart(t *rapid.T) {
	r := newState(m.s.plan)
	for _, rec := range m.journal {
		r.apply(rec)
	}
	checkState(t, r)
	if diff := cmp.Diff(m.lasting(m.s), m.lasting(r)); diff != "" {
		t.Fatalf("replayed state differs (-live +replayed):\n%s", diff)
	}
	m.s, m.queued = r, nil
}

// lasting describes what of a state must survive a restart: all but the jobs that no worker has.
func (m *machine) lasting(s *state) any {
	type kept struct {
		State    dag.State
		Attempt  int32
		Failures int32
		Ended    msec
		Job      int64
		Worker   string
	}
	tasks := make([]kept, len(s.tasks))
	for i, t := range s.tasks {
		tasks[i] = kept{s.frontier.State(i), t.attempt, t.failures, t.ended, 0, s.workers.all[t.worker].name}
		if t.job != nil && t.job.worker != 0 {
			tasks[i].Job = t.job.seq
		}
	}
	tally := s.tally
	return []any{tasks, tally.lost, tally.requeued, tally.retries, tally.failed, tally.firstStarted, tally.lastEnded, s.counts()}
}

func (m *machine) step(t *rapid.T) {
	held := m.held()
	pick := func() *job { return held[rapid.IntRange(0, len(held)-1).Draw(t, "held")] }
	switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
	case event == 0:
		m.restart(t)
	case event == 1 && len(held) > 0:
		m.giveBack(t, pick())
	case event <= 4 && len(m.queued) > 0:
		m.assign(t)
	case len(held) > 0:
		m.finish(t, pick())
	case m.s.frontier.Done() && m.s.counts().Failed > 0 && event == 9:
		m.tell(record{Resumed: true})
	}
	m.release(t)
	checkState(t, m.s)
}

// drain lets everything that is left succeed.
func (m *machine) drain(t *rapid.T) {
	for !m.s.frontier.Done() {
		m.release(t)
		if len(m.queued) == 0 && len(m.held()) == 0 {
			t.Fatalf("nothing is released and nothing runs: %+v", m.s.counts())
		}
		for len(m.queued) > 0 {
			m.assign(t)
		}
		for _, j := range m.held() {
			for _, task := range m.s.remaining(j) {
				m.done[task] = true
				m.tell(record{Finished: &outcome{Seq: j.seq, Task: task, Attempt: m.s.tasks[task].attempt, Status: execution.Done, Started: m.clock, Ended: m.clock}})
			}
		}
	}
}

// Whatever a cluster tells in whatever order, and wherever corrald is killed: the replayed state is the
// live one, no task is run that is done or whose parents are not, no attempt number is used twice, and
// everything comes to an end.
func TestStateProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		var tasks []spec
		for i := range n {
			s := spec{ID: fmt.Sprintf("t%d", i), CPUs: rapid.IntRange(1, 2).Draw(t, "cpus"), Seconds: 1}
			for parent := range i {
				if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					s.After = append(s.After, fmt.Sprintf("t%d", parent))
				}
			}
			tasks = append(tasks, s)
		}
		clustering := rapid.SampledFrom([]string{"none", "horizontal=1", "horizontal=2"}).Draw(t, "clustering")
		p := mustPlan(t, corral.RunOptions{Clustering: clustering, Retries: rapid.IntRange(0, 1).Draw(t, "retries")}, tasks...)
		m := &machine{s: newState(p), ran: map[part]bool{}, done: map[int32]bool{}}
		m.release(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			m.step(t)
		}
		m.drain(t)
		m.restart(t)
	})
}

func TestClusteredJobs(t *testing.T) {
	t.Parallel()
	tasks := fan(4, 1)
	tasks[4].MemoryMiB = 512 // m3 may not share
	s := newState(mustPlan(t, mustOptions("horizontal=2"), tasks...))
	release := func() (jobs [][]string) {
		for _, j := range s.release(1<<40, Supply{}) {
			var ids []string
			for _, p := range j.parts {
				ids = append(ids, fmt.Sprintf("%s.%d", s.plan.id(p.Task), p.Attempt))
			}
			jobs = append(jobs, ids)
		}
		return jobs
	}
	expect := func(want ...[]string) {
		t.Helper()
		if diff := cmp.Diff(want, release()); diff != "" {
			t.Errorf("released (-want +got):\n%s", diff)
		}
	}
	ended := func(seq int64, task int32, attempt int32, status execution.Status) {
		s.apply(record{Finished: &outcome{Seq: seq, Task: task, Attempt: attempt, Status: status, Started: 1, Ended: 2}})
	}
	expect([]string{"a.1"})
	ended(1, 0, 1, execution.Done)
	expect([]string{"m0.1", "m1.1", "m2.1"}, []string{"m3.1"})
	s.apply(record{Assigned: &assignment{Seq: 2, Worker: "w"}})
	s.apply(record{Returned: &giveback{Seqs: []int64{2}}})
	expect([]string{"m0.1", "m1.1", "m2.1"}) // never started: together, the same attempts
	ended(4, 1, 1, execution.Done)
	ended(4, 2, 1, execution.Failed)
	expect([]string{"m1.2"}) // failed: alone
	s.apply(record{Returned: &giveback{Seqs: []int64{4, 4}, Started: true}})
	expect([]string{"m2.2"}) // lost: alone
}

func TestClusterOutlivingEveryWorkerIsSplit(t *testing.T) {
	t.Parallel()
	tasks := []spec{{ID: "a", Seconds: 40}, {ID: "b", Seconds: 40}}
	for left, want := range map[time.Duration]int{time.Minute: 2, 80 * time.Second: 1} {
		s := newState(mustPlan(t, mustOptions("horizontal=1"), tasks...))
		supply := Supply{Shapes: []Shape{{CPUs: 1, Left: left}}}
		if got := len(s.release(0, supply)); got != want {
			t.Errorf("workers that stay %s: %d jobs, want %d", left, got, want)
		}
	}
}

func TestLostWorkCountsWhatCouldRunAtOnce(t *testing.T) {
	t.Parallel()
	s := newState(mustPlan(t, mustOptions("none"), spec{ID: "a"}, spec{ID: "b"}, spec{ID: "c"}, spec{ID: "d"}))
	s.release(0, Supply{})
	s.apply(record{Met: &meeting{"w", 2}})
	for seq := range int64(4) { // two run, two are prefetched
		s.apply(record{At: 1000, Assigned: &assignment{Seq: seq + 1, Worker: "w"}})
	}
	s.apply(record{At: 5000, Finished: &outcome{Seq: 1, Task: 0, Attempt: 1, Status: execution.Done, Worker: "w", Started: 1000, Ended: 5000}})
	s.apply(record{At: 8000, Returned: &giveback{Seqs: []int64{2, 3, 4}, Started: true}})
	if s.tally.lost != 6*time.Second || s.tally.requeued != 3 {
		t.Errorf("lost %s in %d tasks, want 2 × 3 s in 3", s.tally.lost, s.tally.requeued)
	}
}

func TestFailureNamesOnlyFilesThatAreThere(t *testing.T) {
	t.Parallel()
	s := newState(mustPlan(t, corral.RunOptions{Clustering: "none"}, spec{ID: "a"}))
	s.release(0, Supply{})
	s.apply(record{At: 1000, Assigned: &assignment{Seq: 1, Worker: "w"}})
	s.apply(record{At: 5000, Finished: &outcome{Seq: 1, Task: 0, Attempt: 1, Status: execution.Failed, Exit: -1, Reason: "no room"}})
	const words = "task a failed (no room) in attempt 1"
	if got := s.failure(func(string) bool { return false }); got != words {
		t.Errorf("failure() = %q, want %q", got, words)
	}
	stderr := filepath.Join(s.plan.dir, "tasks", "a.1", "stderr")
	if got := s.failure(func(path string) bool { return path == stderr }); got != words+"; see "+stderr {
		t.Errorf("failure() = %q, want the path of stderr", got)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}
	for failures, d := range want {
		if got := backoff(int32(failures)); got != d {
			t.Errorf("backoff(%d) = %s, want %s", failures, got, d)
		}
	}
	if got := backoff(1 << 30); got != time.Minute {
		t.Errorf("backoff(many) = %s", got)
	}
}

// What is loose waits for the end of its back-off and no longer, even when the clock was set back.
func TestClockSetBackHoldsNothing(t *testing.T) {
	t.Parallel()
	const now, minute = msec(1 << 40), 60_000
	for _, tt := range []struct {
		after msec
		want  int
	}{{now, 1}, {now + minute, 0}, {now + minute + 1, 1}, {now + 60*minute, 1}} {
		s := newState(mustPlan(t, mustOptions("none"), spec{ID: "one"}))
		s.loose = []batch{{tasks: []int32{0}, after: tt.after}}
		if got := len(s.release(now, Supply{})); got != tt.want {
			t.Errorf("%d jobs are released that are due in %s, want %d", got, tt.after.sub(now), tt.want)
		}
	}
}
