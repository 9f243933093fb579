//go:build sites

package schedd

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/work/run"
)

var _ run.Dispatcher = (*Submitter)(nil)

// A recorder is a run's sink that records its calls.
type recorder struct {
	mu       sync.Mutex // guards the fields below
	assigned map[int64][]string
	results  []execution.Result
	returned map[int64]string
	refuse   error // returned by Assigned and Finished
}

func newRecorder() *recorder {
	return &recorder{assigned: map[int64][]string{}, returned: map[int64]string{}}
}

func (r *recorder) Assigned(worker string, jobs []execution.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range jobs {
		r.assigned[k.Seq] = append(r.assigned[k.Seq], worker)
	}
	return r.refuse
}

func (r *recorder) Finished(results []execution.Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse == nil {
		r.results = append(r.results, results...)
	}
	return r.refuse
}

func (r *recorder) Returned(jobs []execution.Key, started bool, _ time.Time, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range jobs {
		r.returned[k.Seq] = fmt.Sprint(started, " ", reason)
	}
}

// ended counts the jobs that are over.
func (r *recorder) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.results) + len(r.returned)
}

// done counts the results.
func (r *recorder) done() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.results)
}

// again returns the next attempts of jobs that were returned, like a run.
func (r *recorder) again(jobs []execution.Job) (again []execution.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range jobs {
		if _, back := r.returned[jobs[k].Seq]; back {
			jobs[k].Tasks[0].Attempt++
			again = append(again, jobs[k])
		}
	}
	clear(r.returned)
	return again
}

func (r *recorder) workers(seq int64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.assigned[seq])
}

func (s *site) lg() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.MultiWriter(s.Output(), &s.said), nil))
}

func (s *site) queue() *Submitter {
	q := New(s.lg(), Config{Tools: s.pool.Tools(), Dir: filepath.Join(s.dir, "q")})
	s.Cleanup(q.Close)
	return q
}

// runDir creates a run's directory.
func (s *site) runDir() string {
	s.Helper()
	dir := filepath.Join(s.dir, "D")
	for _, name := range []string{"data", "tasks"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			s.Fatal(err)
		}
	}
	return dir
}

func (s *site) read(elem ...string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		s.Error(err)
	}
	return string(text)
}

func sh(dir string, run corral.RunID, seq int64, script string) execution.Job {
	return execution.Job{Run: run, Seq: seq, Dir: dir, CPUs: 1, MemoryMiB: 10, Tasks: []execution.Task{{
		Index: int(seq), ID: fmt.Sprintf("t%d", seq), Attempt: 1, Argv: []string{"sh", "-c", script}, Estimate: time.Second,
	}}}
}

func TestRunOfTenJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 2, nil)
	dir := s.runDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "in", "a, b"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var jobs []execution.Job
	for seq := range int64(10) {
		j := sh(dir, 7, seq, fmt.Sprintf("cat 'in/a, b' >out/%d; echo from $CORRAL_TASK; echo warned >&2; env >env; pwd", seq))
		j.Tasks[0].Inputs = []string{"in/a, b"}
		j.Tasks[0].Outputs = []string{fmt.Sprintf("out/%d", seq)}
		jobs = append(jobs, j)
	}
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	from := time.Now()
	q.Submit(jobs)
	eventually(t, "end of ten jobs", func() bool { return r.ended() == len(jobs) })
	t.Logf("ten jobs took %v", time.Since(from).Round(time.Millisecond))
	for _, res := range r.results {
		if res.Status != execution.Done || res.Worker != "g/0" || res.Key.Run != 7 || res.MaxRSSKiB == 0 || !res.EndedAt.After(res.StartedAt) {
			t.Errorf("result = %+v, want done on g/0", res)
		}
		if got := r.workers(res.Key.Seq); !slices.Equal(got, []string{"g/0"}) {
			t.Errorf("job %d was assigned to %q", res.Key.Seq, got)
		}
		if got := s.read(dir, "data", "out", fmt.Sprint(res.Index)); got != "alpha\n" {
			t.Errorf("output %d = %q", res.Index, got)
		}
		attempt := filepath.Join(dir, "tasks", fmt.Sprintf("t%d.1", res.Index))
		if got := s.read(attempt, "stdout"); !strings.HasPrefix(got, fmt.Sprintf("from t%d\n", res.Index)) {
			t.Errorf("stdout = %q", got)
		}
		if got := s.read(attempt, "stderr"); got != "warned\n" {
			t.Errorf("stderr = %q", got)
		}
		s.read(attempt, "record.json")
	}
	q.Detach(7)
	eventually(t, "end of the run's files", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "q", "7"))
		return os.IsNotExist(err)
	})
	if left, err := os.ReadDir(filepath.Join(dir, "jobs")); err == nil {
		t.Errorf("left in the run's directory: %v", left)
	}
}

// all submits jobs and waits until they are over.
func (s *site) all(q *Submitter, r *recorder, jobs ...execution.Job) {
	s.Helper()
	q.Submit(jobs)
	eventually(s, "end of the jobs", func() bool { return r.ended() == len(jobs) })
}

// kill kills a daemon of the pool. If the daemon is just being started, kill waits for it.
func (s *site) kill(daemon string) {
	s.Helper()
	s.killOf(s.pool.Tools().Config, daemon)
}

// killOf kills the daemons whose configuration is below dir, all at once, because some end by themselves without the
// others.
func (s *site) killOf(dir string, daemons ...string) {
	s.Helper()
	pids := make([]int, len(daemons))
	for i, daemon := range daemons {
		eventually(s, daemon, func() bool {
			pids[i] = daemonOf(dir, daemon)
			return pids[i] != 0
		})
	}
	for i, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH { // it may have ended
			s.Fatalf("killing %s: %v", daemons[i], err)
		}
	}
}

// daemonOf returns the process of a daemon whose configuration is below dir, or 0 if it is not running. It excludes a
// daemon's forked copies, which answer queries.
func daemonOf(dir, daemon string) int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // never fails
	for _, name := range environs {
		environ, err := os.ReadFile(name)
		proc := filepath.Dir(name)
		if err != nil || !strings.Contains(string(environ), "CONDOR_CONFIG="+dir) || program(proc) != daemon {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(proc, "status"))
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		if ppid, _, _ := strings.Cut(rest, "\n"); program("/proc/"+ppid) == daemon {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
			return pid
		}
	}
	return 0
}

// program returns the program of a process, or "." if it has ended.
func program(proc string) string {
	exe, _ := os.Readlink(filepath.Join(proc, "exe"))
	return filepath.Base(exe)
}

func TestScheddKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 2, nil)
	dir := s.runDir()
	var jobs []execution.Job
	for seq := range int64(8) {
		jobs = append(jobs, sh(dir, 7, seq, fmt.Sprintf("echo x >>%s/ran.%d; sleep 2", dir, seq)))
	}
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Submit(jobs[:6])
	eventually(t, "first end", func() bool { return r.ended() > 0 })
	s.kill("condor_schedd")
	q.Submit(jobs[6:]) // while the schedd is down
	eventually(t, "end of the jobs", func() bool {
		q.Submit(r.again(jobs))
		return r.done() == len(jobs)
	})
	s.onceEach(r, dir, jobs, 1)
}

// twice is the number of jobs that HTCondor may start again for each kill of its schedd: those assigned to the
// glidein's two CPUs but not yet recorded.
const twice = 2

// onceEach checks that all jobs are done and ran once, or once more for each time that HTCondor lost them or, because
// its schedd was killed that many times, started them again.
func (s *site) onceEach(r *recorder, dir string, jobs []execution.Job, kills int) {
	s.Helper()
	seen := map[int64]int{}
	for _, res := range r.results {
		seen[res.Key.Seq]++
		if res.Status != execution.Done {
			s.Errorf("result = %+v", res)
		}
	}
	again := 0
	for _, j := range jobs {
		ran := len(s.read(dir, fmt.Sprintf("ran.%d", j.Seq))) / len("x\n")
		again += max(0, ran-j.Tasks[0].Attempt)
		if ran < 1 || seen[j.Seq] != 1 {
			s.Errorf("job %d ran %d times in %d attempts, %d results, want one", j.Seq, ran, j.Tasks[0].Attempt, seen[j.Seq])
		}
	}
	if again > twice*kills {
		s.Errorf("%d executions too many; the schedd was killed %d times", again, kills)
	}
}

func TestRestartFindsJobsAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 2, nil)
	dir := s.runDir()
	var jobs []execution.Job
	for seq := range int64(6) {
		jobs = append(jobs, sh(dir, 7, seq, fmt.Sprintf("echo x >>%s/ran.%d; sleep 1", dir, seq)))
	}
	stranger := sh(dir, 7, 99, "sleep 600")
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Submit(append(jobs, stranger))
	eventually(t, "first start", func() bool { return len(r.workers(0)) > 0 })
	q.Close()
	known := r.ended()
	running := slices.DeleteFunc(slices.Clone(jobs), func(j execution.Job) bool { return len(r.workers(j.Seq)) == 0 })
	t.Logf("%d jobs are over, %d were started", known, len(running))

	q = New(s.lg(), Config{Tools: s.pool.Tools(), Dir: filepath.Join(s.dir, "q"), Claim: 20 * time.Second})
	t.Cleanup(q.Close)
	q.Attach(7, r)
	var loose []execution.Job
	for _, j := range jobs {
		if len(r.workers(j.Seq)) == 0 {
			loose = append(loose, j) // not in the journal
		}
	}
	q.Expect(7, "g/0", slices.DeleteFunc(running, func(j execution.Job) bool {
		return slices.ContainsFunc(r.results, func(res execution.Result) bool { return res.Key.Seq == j.Seq })
	}))
	q.Submit(loose)
	eventually(t, "end of the jobs", func() bool { return r.ended() >= len(jobs) })
	s.onceEach(r, dir, jobs, 0)
	eventually(t, "end of a job that nobody claims", func() bool {
		ads, err := s.pool.Tools().Query(soon(t), "condor_q", nil, []string{"JobStatus"})
		return err == nil && len(ads) == 0
	})
}

func TestExpectedJobThatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.runDir()
	r := newRecorder()
	q := s.queue()
	q.Attach(7, r)
	q.Expect(7, "g/0", []execution.Job{sh(dir, 7, 1, "true")})
	eventually(t, "its return", func() bool { return r.ended() == 1 })
	if got := r.returned[1]; got != "true its job is not in HTCondor's queue any more" {
		t.Errorf("returned: %q", got)
	}
}

// TestAttachedAgainWhileCleaningUp resumes a run while its schedd is down.
func TestAttachedAgainWhileCleaningUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	dir := s.runDir()
	q, r := s.one(sh(dir, 7, 1, "sleep 600"))
	s.kill("condor_schedd")
	q.Detach(7)
	q.Attach(7, r)
	q.Detach(7)
	again := newRecorder()
	q.Attach(7, again)
	s.all(q, again, sh(dir, 7, 2, "true"))
	if again.done() != 1 || r.ended() > 0 {
		t.Errorf("results %+v, returned %v; before: %d", again.results, again.returned, r.ended())
	}
}
