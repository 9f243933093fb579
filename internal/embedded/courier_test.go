package embedded_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// blind starts a worker as a process that sees an empty directory in place of dir, and works in scratch.
func (c *cluster) blind(tb testing.TB, id, dir, scratch string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "POOL_TEST_WORKER=unix:"+c.socket, "POOL_TEST_ID="+id, "POOL_TEST_INSTANCE="+id+time.Now().String(),
		"POOL_TEST_HIDE="+dir, "POOL_TEST_SCRATCH="+scratch)
	cmd.Stderr = tb.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// newBlindBed returns a cluster with one worker that does not see the run's directory.
func newBlindBed(t *testing.T, cfg dispatch.Config) (b *bed, scratch string) {
	t.Helper()
	b = &bed{cluster: newCluster(t, cfg), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	scratch = t.TempDir()
	b.blind(t, "tag/0", b.dir, scratch)
	b.awaitWorkers(t, 1)
	return b, scratch
}

// nothingLeft checks that no parcel is left in the run's directory or at the worker.
func nothingLeft(t *testing.T, b *bed, scratch string) {
	t.Helper()
	await(t, "parcels to be gone", func() bool {
		here, _ := filepath.Glob(filepath.Join(b.dir, transfer.SpoolDir+"*"))
		there, _ := filepath.Glob(filepath.Join(scratch, "parcel-*"))
		return len(here)+len(there) == 0
	})
}

func TestFilesTravelToAWorkerThatDoesNotSeeTheRun(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	b.data(t, "in/one", "first\n")
	b.data(t, "tree/leaf/two", "second\n")
	j := sh(1, b.dir, "cat in/one tree/leaf/two; mkdir -p out/dir; cp in/one out/dir/copy; echo sum > out/sum; pwd >&2")
	j.Tasks[0].Inputs, j.Tasks[0].Outputs = []string{"in/one", "tree"}, []string{"out/sum", "out/dir"}
	bad, lacks := shTask(2, "echo so far; echo half > half; exit 7"), shTask(3, "true")
	bad.Outputs, bad.Judged = []string{"half", "rest"}, true
	lacks.Inputs = []string{"nowhere"}
	j.Tasks = append(j.Tasks, bad, lacks)
	b.d.Submit([]execution.Job{j})
	b.sink.awaitResults(t, 3)
	results, returned := b.sink.seen()
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d %s %d %s", r.Index, r.Status, r.Exit, r.Worker))
	}
	if diff := cmp.Diff([]string{"1 done 0 tag/0", "2 failed 7 tag/0", "3 failed -1 tag/0"}, got); diff != "" || len(returned) > 0 {
		t.Errorf("results (-want +got):\n%s\nreturned: %v", diff, returned)
	}
	if why := results[2].Reason; !strings.Contains(why, `input "nowhere" is missing`) {
		t.Errorf("the third failed as it %s", why)
	}
	for i, r := range results { // the inputs of all tasks came with the first job
		if way := r.Travel; (way.In > 0) != (i == 0) || way.Out <= 0 || way.Bytes <= 0 {
			t.Errorf("files of task %d travelled for %+v", r.Index, way)
		}
	}
	of := func(i int) string { return filepath.Join(b.dir, executor.TasksDir, j.Tasks[i].ID+".1") }
	for path, want := range map[string]string{
		filepath.Join(b.dir, executor.DataDir, "out/sum"):      "sum\n",
		filepath.Join(b.dir, executor.DataDir, "out/dir/copy"): "first\n",
		of(0) + "/stdout": "first\nsecond\n",
		of(1) + "/stdout": "so far\n",
		of(1) + "/half":   "half\n", // for a POST script
	} {
		if have := read(t, path); have != want {
			t.Errorf("%s has %q, want %q", path, have, want)
		}
	}
	if at := read(t, of(0), "stderr"); !strings.HasPrefix(at, scratch) {
		t.Errorf("the task ran in %q, want below the worker's %s", at, scratch)
	}
	if !strings.Contains(read(t, of(1), executor.RecordFile), `"exit":7`) {
		t.Error("the record of the failed task did not come back")
	}
	nothingLeft(t, b, scratch)
}

// The inputs of a job that waits at a worker arrive while another job runs there.
func TestInputsAreFetchedAhead(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	b.data(t, "in/small", "small")
	b.data(t, "in/large", strings.Repeat("l", 17<<20))
	const tries = 30 // a busy machine may need longer than a job waits at a worker
	for try := range int64(tries) {
		if fetchedAhead(t, b, scratch, 3*try) {
			return
		}
	}
	t.Errorf("in none of %d tries the next job's inputs came while another ran", tries)
}

// fetchedAhead runs three jobs, and reports whether the inputs of the second job arrived while the first job ran. The
// third job's inputs are too large to be fetched ahead.
func fetchedAhead(t *testing.T, b *bed, scratch string, seq int64) bool {
	t.Helper()
	come := func(name string) string {
		return "[ -e " + scratch + "/parcel-*/run/" + executor.DataDir + "/in/" + name + " ]"
	}
	first := sh(seq, b.dir, "for i in $(seq 100); do "+come("small")+" && echo ahead && "+come("large")+
		" && echo too large; "+come("small")+" && exit; sleep 0.01; done")
	next, large := sh(seq+1, b.dir, "cat in/small"), sh(seq+2, b.dir, "wc -c < in/large")
	next.Tasks[0].Inputs, large.Tasks[0].Inputs = []string{"in/small"}, []string{"in/large"}
	for _, j := range []execution.Job{first, next, large} {
		j.Tasks[0].Estimate = 0 // so short that further jobs are sent ahead
	}
	b.d.Submit([]execution.Job{first, next, large})
	printed := func(j execution.Job) string {
		return read(t, b.dir, executor.TasksDir, j.Tasks[0].ID+".1", "stdout")
	}
	for seq, r := range b.sink.awaitResults(t, int(seq)+3) {
		if r.Status != execution.Done {
			t.Fatalf("result of job %d = %+v, want done", seq, r)
		}
	}
	nothingLeft(t, b, scratch)
	if got := printed(next) + printed(large); got != "small17825792\n" {
		t.Errorf("the tasks printed %q", got)
	}
	got := printed(first)
	if got != "" && got != "ahead\n" {
		t.Errorf("the first task saw that its followers' inputs came %q", got)
	}
	return got != ""
}

func TestManyParcelsUseFewConnections(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	var jobs []execution.Job
	for seq := range int64(100) {
		j := sh(seq, b.dir, fmt.Sprintf("echo %d > o%d", seq, seq))
		j.Tasks[0].Outputs = []string{fmt.Sprintf("o%d", seq)}
		jobs = append(jobs, j)
	}
	b.d.Submit(jobs)
	b.sink.awaitResults(t, len(jobs))
	for seq := range jobs {
		if got := read(t, b.dir, executor.DataDir, fmt.Sprintf("o%d", seq)); got != fmt.Sprintf("%d\n", seq) {
			t.Errorf("output %d is %q", seq, got)
		}
	}
	nothingLeft(t, b, scratch)
}

func TestInputThatCannotTravelFailsItsTask(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	if err := syscall.Mkfifo(filepath.Join(b.dir, executor.DataDir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := sh(1, b.dir, "true")
	j.Tasks[0].Inputs = []string{"pipe"}
	b.d.Submit([]execution.Job{j})
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Failed || !strings.Contains(got.Reason, "neither a file nor a directory") {
		t.Errorf("result = %+v, want a failure that names the pipe", got)
	}
	nothingLeft(t, b, scratch)
}

func TestCancelledRemoteTaskIsKilled(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	pid := filepath.Join(t.TempDir(), "pid")
	b.d.Submit([]execution.Job{sh(1, b.dir, "echo $$ > "+pid+"; sleep 64")})
	var started string
	await(t, "the task to start", func() bool {
		content, _ := os.ReadFile(pid)
		started = strings.TrimSpace(string(content))
		return started != ""
	})
	b.d.Cancel(1)
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Cancelled {
		t.Errorf("result = %+v, want cancelled", got)
	}
	awaitDeath(t, started)
	nothingLeft(t, b, scratch)
}

// A breaker forwards connections to a socket, and breaks some of them.
type breaker struct {
	net.Listener
	breaks atomic.Int64 // number of connections that it still breaks
	after  int64        // number of bytes that it forwards before a break
	conns  sync.WaitGroup
}

func newBreaker(t *testing.T, c *cluster, breaks, after int64) *breaker {
	t.Helper()
	dir, err := os.MkdirTemp("", "pool")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{Listener: ln, after: after}
	b.breaks.Store(breaks)
	b.conns.Go(func() { b.serve(c.socket) })
	t.Cleanup(func() {
		ln.Close()
		b.conns.Wait()
		os.RemoveAll(dir)
	})
	return b
}

func (b *breaker) serve(socket string) {
	for {
		near, err := b.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", socket)
		if err != nil {
			near.Close()
			continue
		}
		b.conns.Go(func() {
			b.pass(far, near)
			near.Close()
		})
		b.conns.Go(func() {
			b.pass(near, far)
			far.Close()
		})
	}
}

// pass copies until either side ends, or until the break.
func (b *breaker) pass(from, to net.Conn) {
	buf := make([]byte, 64<<10)
	var passed int64
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if passed += int64(n); passed > b.after && b.breaks.Add(-1) >= 0 {
			from.Close()
			to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestParcelsOutliveConnections(t *testing.T) {
	t.Parallel()
	b := &bed{cluster: newCluster(t, dispatch.Config{}), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	between := newBreaker(t, b.cluster, 3, 1<<20)
	scratch := t.TempDir()
	through := *b.cluster
	through.socket = between.Addr().String()
	through.blind(t, "tag/0", b.dir, scratch)
	b.awaitWorkers(t, 1)
	b.data(t, "big", strings.Repeat("0123456789abcdef", 200<<10)) // 3.2 MiB in each direction
	j := sh(1, b.dir, "cp big out")
	j.Tasks[0].Inputs, j.Tasks[0].Outputs = []string{"big"}, []string{"out"}
	b.d.Submit([]execution.Job{j})
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}
	if read(t, b.dir, executor.DataDir, "out") != read(t, b.dir, executor.DataDir, "big") {
		t.Error("what came back is not what was sent")
	}
	if left := between.breaks.Load(); left > 0 {
		t.Errorf("%d connections were not broken", left)
	}
	nothingLeft(t, b, scratch)
}

// A task whose files travel continues while its dispatcher restarts, and its files are returned to the new dispatcher.
func TestRemoteTaskOutlivesItsDispatcher(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	j := sh(1, b.dir, "cat "+gate+" > out")
	j.Tasks[0].Outputs = []string{"out"}
	b.d.Submit([]execution.Job{j})
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // opens when the task reads
	if err != nil {
		t.Fatal(err)
	}
	b.stop()
	next := newClusterAt(t, dispatch.Config{}, b.socket)
	sink := newRecorder()
	next.d.Attach(1, sink)
	next.d.Expect(1, "tag/0", []execution.Job{j})
	if _, err := open.WriteString("after all\n"); err != nil {
		t.Fatal(err)
	}
	open.Close()
	if got := sink.awaitResults(t, 1)[1]; got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}
	if got := read(t, b.dir, executor.DataDir, "out"); got != "after all\n" {
		t.Errorf("the output is %q", got)
	}
	nothingLeft(t, b, scratch)
}

// A courier that has been idle for a long time leaves its place at the port, and connects again for the next job.
func TestIdleCouriersLeaveAndReturn(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{Idle: time.Millisecond})
	for seq := range int64(5) {
		b.d.Submit([]execution.Job{sh(seq, b.dir, "sleep 0.05")})
		if got := b.sink.awaitResults(t, int(seq)+1)[seq]; got.Status != execution.Done {
			t.Errorf("result = %+v, want done", got)
		}
	}
	nothingLeft(t, b, scratch)
}

// The parcels that a killed dispatcher or worker left are removed; other files stay.
func TestLeftoverParcelsAreRemoved(t *testing.T) {
	t.Parallel()
	b := &bed{cluster: newCluster(t, dispatch.Config{}), dir: runDir(t)}
	scratch := t.TempDir()
	for _, dir := range []string{b.dir + "/" + transfer.SpoolDir + "/1/in", scratch + "/parcel-1/in", scratch + "/other"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := transfer.Sweep(b.dir); err != nil {
		t.Error(err)
	}
	absent(t, b.dir, transfer.SpoolDir)
	if _, err := os.Stat(filepath.Join(b.dir, executor.DataDir)); err != nil {
		t.Error(err)
	}
	cfg := workerConfig("tag/0", b.address())
	cfg.Scratch = scratch
	b.work(t, cfg)
	b.awaitWorkers(t, 1)
	absent(t, scratch, "parcel-1")
	if _, err := os.Stat(scratch + "/other"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheOwnerGetsAParcel(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.enter("0", "first", nil)
		s.d.Submit([]execution.Job{noop(1, 7, t.TempDir())})
		w.expect(wire.TypeAssign)
		for _, c := range []struct {
			id, instance string
			seq          int64
			want         corral.Kind
		}{
			{"0", "first", 7, ""},
			{"0", "first", 8, corral.Conflict},
			{"0", "second", 7, corral.Conflict},
			{"1", "first", 7, corral.Unavailable}, // the worker may still return
		} {
			courier := s.greet(&wire.Hello{
				Version: wire.Version, Role: wire.RoleCourier, Tag: "tag", Token: testToken, ID: "tag/" + c.id, Instance: c.instance, Holder: "pilot", CPUs: 4,
			})
			courier.expect(wire.TypeWelcome)
			courier.Send(&wire.Message{Type: wire.TypeFetch, Keys: []execution.Key{{Run: 1, Seq: c.seq}}})
			if m := courier.expect(wire.TypeParcel); m.Kind != c.want {
				t.Errorf("%+v: %q %s", c, m.Kind, m.Reason)
			}
			if c.want == "" {
				continue // the parcel follows
			}
			courier.Send(&wire.Message{Type: wire.TypeDeliver, Keys: []execution.Key{{Run: 1, Seq: c.seq}}})
			courier.SendFrame(nil)
			if m := courier.expect(wire.TypeDelivered); m.Kind != c.want {
				t.Errorf("%+v, delivering: %q %s", c, m.Kind, m.Reason)
			}
		}
	})
}

// A directory on another machine with the path of the run's directory is not mistaken for it.
func TestOtherDirectoryWithTheRunsPath(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	b.d.Submit([]execution.Job{sh(1, b.dir, "mkdir "+b.dir+"/"+executor.DataDir)}) // on the worker's machine
	b.sink.awaitResults(t, 1)
	j := sh(2, b.dir, "echo here > out")
	j.Tasks[0].Outputs, j.Mark = []string{"out"}, executor.Mark(b.dir)
	b.d.Submit([]execution.Job{j})
	if got := b.sink.awaitResults(t, 2)[2]; got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}
	if got := read(t, b.dir, executor.DataDir, "out"); got != "here\n" {
		t.Errorf("the output is %q", got)
	}
	nothingLeft(t, b, scratch)
}
