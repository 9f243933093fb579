package embedded_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A recorder is a sink that remembers everything, and fails on request.
type recorder struct {
	mu       sync.Mutex
	assigned map[execution.Key][]string // workers, in order
	results  []execution.Result
	returned []returnedJob
	until    time.Time     // argument of the last call of Returned
	calls    int           // active calls; more than one at once is an error
	overlap  bool          // two calls were active at once
	fail     int           // number of calls of Assigned and Finished that will fail
	hold     chan struct{} // if set, Finished waits for it
}

type returnedJob struct {
	Seq     int64
	Started bool
	Reason  string
}

func newRecorder() *recorder { return &recorder{assigned: map[execution.Key][]string{}} }

func (r *recorder) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.overlap = r.overlap || r.calls > 1
	if r.fail > 0 {
		r.fail--
		return errors.New("the journal is full")
	}
	return nil
}

func (r *recorder) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls--
}

func (r *recorder) Assigned(worker string, jobs []execution.Key) error {
	defer r.exit()
	if err := r.enter(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range jobs {
		r.assigned[k] = append(r.assigned[k], worker)
	}
	return nil
}

func (r *recorder) Finished(results []execution.Result) error {
	defer r.exit()
	if err := r.enter(); err != nil {
		return err
	}
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range results {
		if !slices.ContainsFunc(r.results, func(have execution.Result) bool { return have.Key == res.Key && have.Index == res.Index }) {
			r.results = append(r.results, res)
		}
	}
	return nil
}

func (r *recorder) Returned(jobs []execution.Key, started bool, until time.Time, reason string) {
	defer r.exit()
	_ = r.enter()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range jobs {
		r.returned = append(r.returned, returnedJob{k.Seq, started, reason})
	}
	r.until = until
}

// lastUntil returns the time until which the worker of the last returned jobs was known to be alive.
func (r *recorder) lastUntil() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until
}

// failNext makes the next n calls fail.
func (r *recorder) failNext(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = n
}

// seen returns copies of the recorded results and returned jobs.
func (r *recorder) seen() ([]execution.Result, []returnedJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.results), slices.Clone(r.returned)
}

// workersOf returns the workers to which a job was assigned.
func (r *recorder) workersOf(seq int64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.assigned[execution.Key{Run: 1, Seq: seq}])
}

// awaitResults waits for n results and returns them by job.
func (r *recorder) awaitResults(t *testing.T, n int) map[int64]execution.Result {
	t.Helper()
	await(t, "results", func() bool {
		results, _ := r.seen()
		return len(results) >= n
	})
	byJob := map[int64]execution.Result{}
	results, _ := r.seen()
	for _, res := range results {
		byJob[res.Key.Seq] = res
	}
	return byJob
}

// sh returns a job with one task that runs a shell command.
func sh(seq int64, dir, line string) execution.Job {
	return execution.Job{Run: 1, Seq: seq, Dir: dir, CPUs: 1, MemoryMiB: 100, Tasks: []execution.Task{shTask(int(seq), line)}}
}

func shTask(index int, line string) execution.Task {
	return execution.Task{
		Index: index, ID: "task" + string(rune('A'+index)), Attempt: 1,
		Argv: []string{"sh", "-c", line}, Estimate: time.Second,
	}
}

func keys(seqs ...int64) []execution.Key {
	var all []execution.Key
	for _, seq := range seqs {
		all = append(all, execution.Key{Run: corral.RunID(1), Seq: seq})
	}
	return all
}
