package run

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// These tests use the embedded personal cluster: its dispatcher behind a real socket, its workers, and real processes
// as tasks.

// TestMain lets the test binary act as a worker: a process that a test can kill.
func TestMain(m *testing.M) {
	if address := os.Getenv("RUN_TEST_WORKER"); address != "" {
		if _, err := worker.Run(context.Background(), slog.New(slog.DiscardHandler), workerConfig("killed", address)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func workerConfig(id, address string) worker.Config {
	return worker.Config{
		ID: "tag/" + id, Instance: rand.Text(), Holder: "pilot", Tag: "tag", Token: "secret",
		Addresses: []string{address}, Resources: corral.Resources{CPUs: 1, MemoryMiB: 1000}, EndsIn: time.Hour,
	}
}

// An embedded cluster is a dispatcher behind a Unix socket. It is a Clusters that contains only itself.
type embedded struct {
	socket string
	d      *dispatch.Dispatcher
	stop   func()
}

// terms are long enough for a busy machine.
var terms = dispatch.Config{Lease: 5 * time.Minute, Heartbeat: 2 * time.Second}

func newEmbedded(t testing.TB, socket string) *embedded {
	e := &embedded{socket: socket, d: dispatch.New(quiet(), terms)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- port.New(quiet(), e, nil).ServeUnix(ctx, socket) }()
	e.stop = sync.OnceFunc(func() {
		e.d.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(e.stop)
	return e
}

// socketPath returns a short path: the path of a socket has at most 107 bytes.
func socketPath(t testing.TB) string {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func (e *embedded) Admit(context.Context, port.Credentials) (port.Admission, error) {
	return port.Admission{Attempt: 1, Glidein: 1, Cluster: 1, Links: port.NewLinks(terms.Terms()), Dispatcher: e.d}, nil
}
func (e *embedded) Lease(context.Context, corral.JobID, string, string) error  { return nil }
func (e *embedded) Report(context.Context, corral.JobID, string, string) error { return nil }

func (e *embedded) LoseHost(context.Context, corral.JobID, corral.LostHost) error { return nil }

func (e *embedded) Queue(corral.ClusterID, corral.RunOptions) (Dispatcher, error) { return e.d, nil }

func (e *embedded) Offer(context.Context, corral.ClusterID) (execution.Offer, error) {
	var s execution.Offer
	for _, w := range e.d.Workers() {
		s.CPUs += w.CPUs
		s.Capacities = append(s.Capacities, execution.CapacityOf(w, time.Now()))
	}
	return s, nil
}

// worker starts a worker in this process.
func (e *embedded) worker(t testing.TB, id string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := worker.Run(ctx, quiet(), workerConfig(id, "unix:"+e.socket))
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// process starts a worker as a separate process.
func (e *embedded) process(t *testing.T) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "RUN_TEST_WORKER=unix:"+e.socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// realWorld returns a world whose tasks take real time.
func realWorld(t testing.TB, clusters Clusters) *world {
	w := newWorld(t, clusters)
	w.limit = 3 * time.Minute
	return w
}

// sh returns the command of a task that runs a shell script.
func sh(script string) []string { return []string{"sh", "-c", script} }

func (w *world) log(id corral.RunID, task string, attempt int, which string) string {
	w.Helper()
	f, err := w.manager.Log(asLocal(w), id, File{Task: task, Attempt: attempt, Name: which})
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

func TestFilesFlowThroughRun(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t, socketPath(t))
	e.worker(t, "w1")
	e.worker(t, "w2")
	for end := time.Now().Add(3 * time.Minute); len(e.d.Workers()) < 2; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the workers are %+v, want two", e.d.Workers())
		}
	}
	w := realWorld(t, e)
	defer w.stop()
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "words"), []byte("b\na\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tasks := []spec{{ID: "split", In: []string{"words"}, Out: []string{"p1", "p2", "p3"}, Argv: sh("n=0; while read x; do n=$((n+1)); echo $x > p$n; done < words"), Seconds: 1}}
	join := spec{ID: "join", Out: []string{"sorted"}, Argv: []string{"sort", "u1", "u2", "u3"}, Stdout: "sorted", Seconds: 1}
	for n := range 3 {
		in, out := fmt.Sprintf("p%d", n+1), fmt.Sprintf("u%d", n+1)
		tasks = append(tasks, spec{ID: "up" + in, After: []string{"split"}, In: []string{in}, Out: []string{out}, Argv: sh("tr a-z A-Z < " + in + " > " + out + "; echo to stderr >&2"), Seconds: 1})
		join.In, join.After = append(join.In, out), append(join.After, "up"+in)
	}
	row := w.create(api.NewRun{Workflow: document(append(tasks, join)...), SourceDir: source, Options: corral.RunOptions{Clustering: "horizontal=2"}})
	row = w.awaitOver(row.ID)
	if row.State != corral.RunSucceeded {
		t.Fatalf("run is %s: %s", row.State, row.Reason)
	}
	if got, err := os.ReadFile(filepath.Join(row.Dir, "data", "sorted")); err != nil || string(got) != "A\nB\nC\n" {
		t.Errorf("sorted = %q, %v", got, err)
	}
	if got := w.log(row.ID, "upp1", 0, LogStderr); got != "to stderr\n" {
		t.Errorf("stderr = %q", got)
	}
	if got := w.log(row.ID, "join", 0, LogStdout); got != "A\nB\nC\n" {
		t.Errorf("stdout that is an output = %q", got)
	}
	if got := w.log(row.ID, "join", 1, LogRecord); !strings.Contains(got, "exit") {
		t.Errorf("record = %q", got)
	}
	for _, bad := range []struct {
		task, which string
		attempt     int
		want        corral.Kind
	}{{"nobody", LogStdout, 0, corral.NotFound}, {"join", LogStdout, 7, corral.NotFound}, {"join", "passwd", 0, corral.Invalid}} {
		if _, err := w.manager.Log(asLocal(t), row.ID, File{Task: bad.task, Attempt: bad.attempt, Name: bad.which}); corral.KindOf(err) != bad.want {
			t.Errorf("Log(%q, %d, %q): %v, want %s", bad.task, bad.attempt, bad.which, err, bad.want)
		}
	}
	if row.Report == nil || row.Report.CPUs != 2 || row.Report.TaskTime <= 0 {
		t.Errorf("report = %+v", row.Report)
	}
}

func TestFailedTaskIsNamed(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t, socketPath(t))
	e.worker(t, "w1")
	w := realWorld(t, e)
	defer w.stop()
	row := w.create(api.NewRun{Options: corral.RunOptions{Retries: 1}, Workflow: document(
		spec{ID: "bad", Argv: sh("echo no >&2; exit 7"), Seconds: 1}, spec{ID: "below", After: []string{"bad"}, Seconds: 1}, spec{ID: "good", Seconds: 1})})
	row = w.awaitOver(row.ID)
	if want := (corral.RunTasks{Total: 3, Done: 1, Failed: 1, Skipped: 1}); row.State != corral.RunFailed || row.Tasks != want {
		t.Errorf("run is %s, tasks %+v", row.State, row.Tasks)
	}
	stderr := filepath.Join(row.Dir, "tasks", "bad.2", "stderr")
	if text, err := os.ReadFile(stderr); err != nil || string(text) != "no\n" || !strings.Contains(row.Reason, stderr) || !strings.Contains(row.Reason, "7") {
		t.Errorf("reason = %q; stderr %q, %v", row.Reason, text, err)
	}
	tasks, err := tasksOf(t, w.manager, row.ID)
	if err != nil || tasks[0].State != corral.TaskFailed || tasks[0].Attempts != 2 || *tasks[0].ExitStatus != 7 || tasks[1].Attempts != 0 {
		t.Errorf("tasks = %+v, %v", tasks, err)
	}
}

func TestWorkerKilledInMidTask(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t, socketPath(t))
	worker := e.process(t)
	w := realWorld(t, e)
	defer w.stop()
	begun := filepath.Join(t.TempDir(), "begun")
	script := fmt.Sprintf("if mkfifo %[1]s; then exec cat %[1]s; fi; echo done > out", begun)
	row := w.create(api.NewRun{Workflow: document(spec{ID: "long", Out: []string{"out"}, Argv: sh(script), Seconds: 1})})
	pipe, err := openPipe(t, begun) // the first attempt reads it
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	e.worker(t, "killed") // without the jobs of its predecessor; if it did not come back, its lease would keep them
	row = w.awaitOver(row.ID)
	if row.State != corral.RunSucceeded || row.Report.Requeued != 1 || row.Report.RetriesUsed != 0 {
		t.Fatalf("run is %s: %s, report %+v", row.State, row.Reason, row.Report)
	}
	tasks, err := tasksOf(t, w.manager, row.ID)
	if err != nil || tasks[0].Attempts != 2 || tasks[0].Worker != "tag/killed" {
		t.Errorf("tasks = %+v, %v", tasks, err)
	}
	if got, err := os.ReadFile(filepath.Join(row.Dir, "data", "out")); err != nil || string(got) != "done\n" {
		t.Errorf("out = %q, %v", got, err)
	}
}

// openPipe waits for a task to create a pipe, and opens it for writing.
func openPipe(t *testing.T, path string) (*os.File, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return f, nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return nil, err
		}
	}
}

// corrald and its dispatcher die during a run, and restart with the same store and directory. The worker continues
// meanwhile; no task runs twice.
func TestRestartWithRealWorkers(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	e := newEmbedded(t, socket)
	e.worker(t, "w1")
	w := realWorld(t, e)
	ran := filepath.Join(t.TempDir(), "ran")
	tasks := []spec{}
	for n := range 60 {
		id := fmt.Sprintf("t%d", n)
		s := spec{ID: id, Argv: sh("echo " + id + " >> " + ran), Seconds: 0.1}
		if n%20 > 0 {
			s.After = []string{fmt.Sprintf("t%d", n-1)}
		}
		tasks = append(tasks, s)
	}
	row := w.create(api.NewRun{Workflow: document(tasks...)})
	for _, done := range []int{10, 25, 40} {
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Done >= done })
		w.stop()
		e.stop()
		e = newEmbedded(t, socket)
		w.clusters = e
		w.start()
	}
	defer func() { w.stop() }()
	row = w.awaitOver(row.ID)
	if row.State != corral.RunSucceeded {
		t.Fatalf("run is %s: %s", row.State, row.Reason)
	}
	text, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(text))
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(got) != 60 || len(unique) != 60 {
		t.Errorf("%d executions of %d tasks, want each of 60 once: %v", len(got), len(unique), got)
	}
}

func TestCancelKillsRealTasks(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t, socketPath(t))
	e.worker(t, "w1")
	w := realWorld(t, e)
	defer w.stop()
	begun := filepath.Join(t.TempDir(), "begun")
	row := w.create(api.NewRun{Workflow: document(
		spec{ID: "first", Argv: sh(fmt.Sprintf("mkfifo %[1]s && exec cat %[1]s", begun)), Seconds: 9},
		spec{ID: "second", Seconds: 1}, spec{ID: "third", After: []string{"first"}, Seconds: 1})})
	pipe, err := openPipe(t, begun)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := w.manager.Cancel(asLocal(t), "ann", row.ID); err != nil {
		t.Fatal(err)
	}
	row = w.awaitOver(row.ID)
	if want := (corral.RunTasks{Total: 3, Waiting: 1, Ready: 2}); row.State != corral.RunCancelled || row.Tasks != want {
		t.Errorf("run is %s, tasks %+v, want %+v", row.State, row.Tasks, want)
	}
}
