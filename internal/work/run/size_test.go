package run

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// wide returns a workflow of n independent tasks, like those of a parameter study.
func wide(n int) []spec {
	tasks := make([]spec, n)
	for i := range tasks {
		tasks[i] = spec{ID: fmt.Sprintf("task_%06d", i), Seconds: 1, Argv: []string{"simulate", "--seed", fmt.Sprint(i)}, Out: []string{fmt.Sprintf("out.%06d", i)}}
	}
	return tasks
}

// The journal of 100,000 tasks must stay below 50 MB.
func TestJournalSize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const tasks = 200
		c := newSimCluster(&simWorker{id: "corral-7f3a9c-g12-a1/0", cpus: 8, memoryMiB: 2048})
		w := newWorld(t, c)
		defer w.stop()
		row := w.awaitOver(w.create(api.NewRun{Workflow: document(wide(tasks)...)}).ID)
		info, err := os.Stat(filepath.Join(row.Dir, journalFile))
		if err != nil || row.State != corral.RunSucceeded {
			t.Fatalf("run is %s, %v", row.State, err)
		}
		if per := info.Size() / tasks; per > 400 {
			t.Errorf("the journal has %d bytes for each task, want at most 400", per)
		}
	})
}

// BenchmarkQueued measures the memory of a run whose tasks are queued in a dispatcher without workers: workflow, plan,
// state and the dispatcher's queue together.
func BenchmarkQueued(b *testing.B) {
	const tasks = 100_000
	document := document(wide(tasks)...)
	for b.Loop() {
		before := heap()
		w := realWorld(b, newEmbedded(b, socketPath(b)))
		row := w.create(api.NewRun{Workflow: document})
		w.await(row.ID, func(r corral.Run) bool { return r.Reason != "" })
		b.ReportMetric(float64(heap()-before)/tasks, "B/task")
		w.stop()
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkEvents measures the cost of journaling and applying the two events of a task's life.
func BenchmarkEvents(b *testing.B) {
	p := mustPlan(b, mustOptions("none"), wide(1000)...)
	for b.Loop() {
		s := newState(p)
		j, _, err := openJournal(quiet(), filepath.Join(b.TempDir(), "journal"), now(), s.replay)
		if err != nil {
			b.Fatal(err)
		}
		sink := newSink(quiet(), j)
		jobs := s.x.Release(time.UnixMilli(0), execution.Offer{})
		sink.released(jobs)
		for _, j := range jobs {
			key := execution.Key{Seq: j.Seq}
			if err := sink.Assigned("w", []execution.Key{key}); err != nil {
				b.Fatal(err)
			}
			if err := sink.Finished([]execution.Result{{Key: key, Index: j.Tasks[0].Index, Attempt: 1, Status: execution.Done, Worker: "w"}}); err != nil {
				b.Fatal(err)
			}
		}
		for _, rec := range sink.mail.empty() {
			s.replay(rec)
		}
		if !s.x.Done() {
			b.Fatal("not done")
		}
	}
}
