package execution

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/dag"
)

// anyRecord draws a record that may be of any run: numbers that are wrong, jobs that are not there.
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
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2:
		return Record{At: at, Assigned: &Assignment{seq.Draw(t, "seq"), worker.Draw(t, "worker"), parts()}}
	case 3:
		seqs := rapid.SliceOfN(seq, 0, 3).Draw(t, "seqs")
		return Record{At: at, Returned: &Giveback{Seqs: seqs, Started: rapid.Bool().Draw(t, "started")}}
	case 4:
		return Record{At: at, Gap: &Gap{Seq: seq.Draw(t, "seq"), Floors: parts()}}
	case 5:
		return Record{At: at, Met: &Meeting{worker.Draw(t, "worker"), 2}, CPUs: 2}
	case 6:
		return Record{At: at, Resumed: true}
	}
	status := rapid.SampledFrom([]Status{Done, Done, Done, Failed, Cut, Cancelled, "?"})
	return Record{At: at, Finished: &Outcome{
		Seq: seq.Draw(t, "seq"), Task: small.Draw(t, "task"), Attempt: small.Draw(t, "attempt"),
		Status: status.Draw(t, "status"), Worker: worker.Draw(t, "worker"), Started: at / 2, Ended: at,
	}}
}

// check checks what always holds of an execution.
func check(t *rapid.T, x *Execution) {
	inJobs, running := 0, 0
	for seq, e := range x.book.entries {
		left := x.book.remaining(e)
		inJobs += len(left)
		if e.worker != 0 {
			running += len(left)
		}
		if seq != e.seq || seq >= x.book.nextSeq || int(e.left) != len(left) || e.left == 0 {
			t.Fatalf("job %d: seq %d, next %d, left %d of %d", seq, e.seq, x.book.nextSeq, e.left, len(left))
		}
	}
	for i, e := range x.book.of {
		if e != nil && (x.frontier.state(int32(i)) != dag.Ready || x.book.entries[e.seq] != e) {
			t.Fatalf("task %d is %s in a job", i, x.frontier.state(int32(i)))
		}
		if e != nil {
			inJobs--
		}
	}
	c := x.Counts()
	sum := c.Waiting + c.Ready + c.Running + c.Done + c.Failed + c.Skipped
	if inJobs != 0 || running != x.book.running || sum != c.Total || c.Ready < 0 {
		t.Fatalf("%d tasks too many in jobs, %d running (told %d), counts %+v", inJobs, running, x.book.running, c)
	}
}

// A journal may be damaged in a way that its checksums do not show, or be of another workflow: whatever it says, the
// execution stays in order, and what it releases is ready and in no other job.
func TestAnyRecordKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		tasks := slices.Repeat([]TaskSpec{{ID: "t", CPUs: 1, Estimate: time.Second, Retries: 1}}, 4)
		x := New(Spec{Graph: g, Tasks: tasks, Groups: rapid.IntRange(0, 1).Draw(t, "groups")})
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

// A task waits for the end of its back-off and no longer, even when the clock was set back meanwhile.
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

func TestTaskStateSize(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[taskState]().Size() + reflect.TypeFor[*entry]().Size(); size > 72 {
		t.Errorf("the state of a task has %d bytes, want at most 72: there may be hundreds of thousands", size)
	}
}
