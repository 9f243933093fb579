package execution_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

const minute = execution.Msec(60_000)

// hourAt is the hour in which the tests begin; the times of records are minutes after it.
const hourAt = 500_000

func after(minutes int) execution.Msec { return hourAt*60*minute + execution.Msec(minutes)*minute }

// flat returns a workflow of independent tasks.
func flat(t interface{ Fatal(...any) }, cpus ...int) execution.Spec {
	g, err := dag.New(len(cpus), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := execution.Spec{Graph: g}
	for i, n := range cpus {
		s.Tasks = append(s.Tasks, execution.TaskSpec{ID: string(rune('a' + i)), CPUs: n, Retries: 1})
	}
	return s
}

func assigned(minutes int, seq int64, worker string, task, attempt int32) execution.Record {
	return execution.Record{At: after(minutes), Assigned: &execution.Assignment{
		Seq: seq, Worker: worker, Parts: []execution.Part{{Task: task, Attempt: attempt}}}}
}

func ended(from, to int, seq int64, worker string, task, attempt int32, how execution.Status) execution.Record {
	return execution.Record{At: after(to), Finished: &execution.Outcome{Seq: seq, Task: task, Attempt: attempt,
		Status: how, Worker: worker, Started: after(from), Ended: after(to)}}
}

// The time of attempts that count is used time, and that of repeated attempts is lost time, each in the hours in which
// they ran.
func TestSpent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		now     int
		records []execution.Record
		want    []execution.WorkerHour
	}{
		{"done, over the end of an hour", 100, []execution.Record{
			assigned(50, 1, "w", 0, 1), ended(50, 70, 1, "w", 0, 1, execution.Done),
		}, []execution.WorkerHour{{"w", hourAt, 20 * minute, 0}, {"w", hourAt + 1, 20 * minute, 0}}},
		{"failed, then done", 100, []execution.Record{
			assigned(0, 1, "w", 0, 1), ended(0, 10, 1, "w", 0, 1, execution.Failed),
			assigned(20, 2, "v", 0, 2), ended(20, 25, 2, "v", 0, 2, execution.Done),
		}, []execution.WorkerHour{{"w", hourAt, 0, 20 * minute}, {"v", hourAt, 10 * minute, 0}}},
		{"failed for good", 100, []execution.Record{
			assigned(0, 1, "w", 0, 1), ended(0, 10, 1, "w", 0, 1, execution.Failed),
			assigned(20, 2, "w", 0, 2), ended(20, 25, 2, "w", 0, 2, execution.Failed),
		}, []execution.WorkerHour{{"w", hourAt, 10 * minute, 20 * minute}}},
		{"failed for good, and resumed", 100, []execution.Record{
			assigned(0, 1, "w", 0, 1), ended(0, 10, 1, "w", 0, 1, execution.Failed),
			assigned(20, 2, "w", 0, 2), ended(20, 25, 2, "w", 0, 2, execution.Failed),
			{At: after(30), Resumed: true},
		}, []execution.WorkerHour{{"w", hourAt, 0, 30 * minute}}},
		{"cut off", 100, []execution.Record{
			assigned(0, 1, "w", 1, 1), ended(0, 10, 1, "w", 1, 1, execution.Cut),
		}, []execution.WorkerHour{{"w", hourAt, 0, 10 * minute}}},
		{"gone with its worker", 100, []execution.Record{
			{At: after(0), Met: &execution.Meeting{Worker: "w", CPUs: 1}},
			assigned(0, 1, "w", 1, 1),
			{At: after(30), Returned: &execution.Giveback{Seqs: []int64{1}, Started: true, Until: after(20)}},
		}, []execution.WorkerHour{{"w", hourAt, 0, 20 * minute}}},
		{"never begun", 100, []execution.Record{
			assigned(0, 1, "w", 1, 1),
			{At: after(30), Returned: &execution.Giveback{Seqs: []int64{1}}},
		}, []execution.WorkerHour{}},
		{"running", 40, []execution.Record{
			{At: after(0), Met: &execution.Meeting{Worker: "w", CPUs: 2}},
			assigned(10, 1, "w", 0, 1),
		}, []execution.WorkerHour{{"w", hourAt, 60 * minute, 0}}},
		{"more is there than runs", 40, []execution.Record{
			{At: after(0), Met: &execution.Meeting{Worker: "w", CPUs: 2}},
			assigned(10, 1, "w", 0, 1), assigned(11, 2, "w", 1, 1),
		}, []execution.WorkerHour{{"w", hourAt, 60 * minute, 0}}},
		{"a worker that lies", 100, []execution.Record{
			assigned(0, 1, "w", 1, 1),
			{At: after(1), Finished: &execution.Outcome{Seq: 1, Task: 1, Attempt: 1, Status: execution.Done, Worker: "w",
				Started: 1 << 62, Ended: -1 << 62}},
		}, []execution.WorkerHour{}},
	} {
		x := execution.New(flat(t, 2, 1))
		for _, r := range tt.records {
			x.Apply(r)
		}
		if diff := cmp.Diff(tt.want, execution.WorkerHours(x, after(tt.now).Time())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A crash at any record does not change the total, so the stored total may be replaced at any time.
func TestSpentSurvivesCrashes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := flat(t, 2, 1, 1)
		x := execution.New(spec)
		var journal []execution.Record
		minutes := 0
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			minutes += rapid.IntRange(0, 50).Draw(t, "later")
			task, seq := rapid.Int32Range(0, 2).Draw(t, "task"), rapid.Int64Range(1, 6).Draw(t, "seq")
			worker := rapid.SampledFrom([]string{"w", "v"}).Draw(t, "worker")
			attempt := int32(x.Task(int(task)).Begun + rapid.IntRange(0, 1).Draw(t, "attempt"))
			var r execution.Record
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				r = assigned(minutes, seq, worker, task, attempt)
			case 2:
				how := rapid.SampledFrom([]execution.Status{execution.Done, execution.Failed, execution.Cut}).Draw(t, "how")
				r = ended(minutes-rapid.IntRange(0, 90).Draw(t, "ran"), minutes, seq, worker, task, attempt, how)
			case 3:
				r = execution.Record{At: after(minutes), Returned: &execution.Giveback{Seqs: []int64{seq}, Started: true}}
			case 4:
				r = execution.Record{At: after(minutes), Resumed: true}
			}
			x.Apply(r)
			if journal = append(journal, r); rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				x = execution.New(spec)
				for _, r := range journal {
					x.Apply(r)
				}
			}
		}
		again := execution.New(spec)
		for _, r := range journal {
			again.Apply(r)
		}
		now := after(minutes + 1).Time()
		got := execution.WorkerHours(x, now)
		if diff := cmp.Diff(execution.WorkerHours(again, now), got); diff != "" {
			t.Fatalf("with crashes (-without +with):\n%s", diff)
		}
		for _, s := range got {
			if s.Used < 0 || s.Lost < 0 || s.Hour < 0 {
				t.Fatalf("negative: %+v", s)
			}
		}
		if diff := cmp.Diff(got, execution.WorkerHours(x, now)); diff != "" {
			t.Fatalf("asked twice (-first +second):\n%s", diff)
		}
	})
}

// Times a year from now do not cause a long loop.
func TestSpentIsBounded(t *testing.T) {
	t.Parallel()
	x := execution.New(flat(t, 1))
	x.Apply(assigned(0, 1, "w", 0, 1))
	x.Apply(execution.Record{At: after(1), Finished: &execution.Outcome{Seq: 1, Status: execution.Done, Attempt: 1, Worker: "w",
		Started: 1, Ended: 1<<63 - 1}})
	if got := execution.WorkerHours(x, after(1).Time()); len(got) > 366*24+1 {
		t.Errorf("%d hours, want a year's at most", len(got))
	}
}
