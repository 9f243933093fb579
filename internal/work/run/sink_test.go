package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A return cannot be refused, so it must reach the journal before its consequences: otherwise the result of the next
// attempt would belong to an unknown attempt, and the task would run again.
func TestReturnThatJournalRefusedIsMadeUpFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := openJournal(quiet(), path, time.Now(), func(execution.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := mustPlan(t, mustOptions("none"), spec{ID: "one", Seconds: 1})
	live, sink := newState(p), newSink(quiet(), j)
	assign := func(worker string) execution.Key {
		for _, rec := range sink.mail.empty() {
			live.replay(rec)
		}
		jobs := live.x.Release(time.UnixMilli(1<<50), execution.Offer{})
		if len(jobs) != 1 {
			t.Fatalf("released %v, want one job", jobs)
		}
		sink.released(jobs)
		key := execution.Key{Run: 1, Seq: jobs[0].Seq}
		if err := sink.Assigned(worker, []execution.Key{key}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := assign("w1")
	healthy := j.file
	j.file = full
	sink.Returned([]execution.Key{first}, true, time.Time{}, "w1 was lost")
	j.file = healthy
	second := assign("w2")
	if err := sink.Finished([]execution.Result{{Key: second, Attempt: 2, Status: execution.Done, Worker: "w2"}}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	again := newState(p)
	records, _ := replayed(t, path)
	for _, rec := range records {
		again.replay(rec)
	}
	if state := again.x.Task(0).State; state != corral.TaskDone || again.x.Jobs() > 0 {
		t.Errorf("after a restart the finished task is %s, with %d jobs", state, again.x.Jobs())
	}
}

// The record of a large number of jobs must not exceed the maximum length of a journal line.
func TestReturnOfManyJobsCanBeRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := openJournal(quiet(), path, time.Now(), func(execution.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]execution.Key, 1_000_000)
	for k := range jobs {
		jobs[k] = execution.Key{Run: 1, Seq: 1<<32 + int64(k)}
	}
	newSink(quiet(), j).Returned(jobs, false, time.Time{}, "cancelled")
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	records, cut := replayed(t, path)
	for _, rec := range records {
		n += len(rec.Returned.Seqs)
	}
	if cut || n != len(jobs) {
		t.Errorf("the journal has %d of %d jobs, cut %v", n, len(jobs), cut)
	}
}
