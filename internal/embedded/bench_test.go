package embedded_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// A journalSink works like a run's sink: it writes a line for each event, and combines the lines of one call in one
// write.
type journalSink struct {
	w    *bufio.Writer
	mu   sync.Mutex
	done int
	want int
	over chan struct{}
}

func newJournalSink(tb testing.TB, want int) *journalSink {
	f, err := os.Create(filepath.Join(tb.TempDir(), "journal"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return &journalSink{w: bufio.NewWriter(f), want: want, over: make(chan struct{})}
}

func (s *journalSink) Assigned(worker string, jobs []execution.Key) error {
	for _, k := range jobs {
		fmt.Fprintf(s.w, `{"assigned":%d,"worker":%q}`+"\n", k.Seq, worker)
	}
	return s.w.Flush()
}

func (s *journalSink) Finished(results []execution.Result) error {
	enc := json.NewEncoder(s.w)
	for i := range results {
		if err := enc.Encode(&results[i]); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done += len(results); s.done >= s.want {
		close(s.over)
	}
	return s.w.Flush()
}

func (s *journalSink) Returned(jobs []execution.Key, started bool, _ time.Time, reason string) {
	panic(fmt.Sprint("returned: ", jobs, started, reason))
}

func noop(run corral.RunID, seq int64, dir string) execution.Job {
	return execution.Job{
		Run: run, Seq: seq, Dir: dir, CPUs: 1, MemoryMiB: 100,
		Tasks: []execution.Task{{
			Index: int(seq), ID: "t" + strconv.FormatInt(seq, 10), Attempt: 1,
			Argv: []string{"/bin/true"}, Estimate: time.Second,
		}},
	}
}

// cpuTime is the CPU time that a process has used, without its children.
func cpuTime(tb testing.TB, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	const utime, stime, ticks = 11, 12, 100 // fields after the name; ticks per second
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[utime])
	system, _ := strconv.Atoi(fields[stime])
	return time.Duration(user+system) * time.Second / ticks
}

// BenchmarkNoop runs /bin/true through two one-CPU workers, each in its own process. Compare it with BenchmarkBareLoop
// on a file system in memory (TMPDIR=/dev/shm): after many deletions ext4 creates files slowly for minutes, because it
// does not reuse their inodes, and then both benchmarks measure only that.
func BenchmarkNoop(b *testing.B) {
	benchNoop(b, func(c *cluster, id, _ string) *exec.Cmd { return c.child(b, id) })
}

// BenchmarkTravel is BenchmarkNoop with workers that do not see the run's directory.
func BenchmarkTravel(b *testing.B) {
	benchNoop(b, func(c *cluster, id, dir string) *exec.Cmd { return c.blind(b, id, dir, b.TempDir()) })
}

// BenchmarkCopy runs tasks that read one file of 1 KiB and write another; BenchmarkTravelCopy does the same with
// workers that do not see the run's directory.
func BenchmarkCopy(b *testing.B) {
	benchTasks(b, copied, func(c *cluster, id, _ string) *exec.Cmd { return c.child(b, id) })
}

func BenchmarkTravelCopy(b *testing.B) {
	benchTasks(b, copied, func(c *cluster, id, dir string) *exec.Cmd { return c.blind(b, id, dir, b.TempDir()) })
}

// copied is noop with a command that copies a file.
func copied(run corral.RunID, seq int64, dir string) execution.Job {
	j := noop(run, seq, dir)
	t := &j.Tasks[0]
	out := "out" + strconv.FormatInt(seq, 10)
	t.Argv, t.Inputs, t.Outputs = []string{"/bin/cp", "in", out}, []string{"in"}, []string{out}
	return j
}

func benchNoop(b *testing.B, worker func(c *cluster, id, dir string) *exec.Cmd) {
	benchTasks(b, noop, worker)
}

func benchTasks(
	b *testing.B, job func(corral.RunID, int64, string) execution.Job,
	worker func(c *cluster, id, dir string) *exec.Cmd,
) {
	c := newCluster(b, dispatch.Config{})
	dir := runDir(b)
	if err := os.WriteFile(dir+"/data/in", make([]byte, 1<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	var cmds []*exec.Cmd
	for i := range 2 {
		cmds = append(cmds, worker(c, fmt.Sprintf("bench/%d", i), dir))
	}
	c.awaitWorkers(b, 2)
	sink := newJournalSink(b, b.N)
	c.d.Attach(1, sink)
	jobs := make([]execution.Job, b.N)
	for i := range jobs {
		jobs[i] = job(1, int64(i), dir)
		jobs[i].Pack, jobs[i].Leaf = true, true
	}
	self := cpuTime(b, os.Getpid())
	b.ResetTimer()
	c.d.Submit(jobs)
	<-sink.over
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64((cpuTime(b, os.Getpid())-self).Microseconds())/float64(b.N), "dispatcher-µs/task")
	var workers time.Duration
	for _, cmd := range cmds {
		workers += cpuTime(b, cmd.Process.Pid)
	}
	b.ReportMetric(float64(workers.Microseconds())/float64(b.N), "workers-µs/task")
}

// BenchmarkBareLoop does only the necessary work of each task, for two tasks at a time.
func BenchmarkBareLoop(b *testing.B) {
	dir := runDir(b)
	next := make(chan execution.Job, 256)
	var wg sync.WaitGroup
	self := cpuTime(b, os.Getpid())
	b.ResetTimer()
	for range 2 {
		wg.Go(func() {
			for j := range next {
				bare(b, dir, j.Tasks[0].ID)
			}
		})
	}
	for i := range b.N {
		next <- noop(1, int64(i), dir)
	}
	close(next)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64((cpuTime(b, os.Getpid())-self).Microseconds())/float64(b.N), "self-µs/task")
}

func bare(tb testing.TB, dir, id string) {
	d := dir + "/tasks/" + id + ".1"
	mkdir := os.MkdirAll(d, 0o777)
	out, err1 := os.Create(d + "/stdout")
	serr, err2 := os.Create(d + "/stderr")
	if err := errors.Join(mkdir, err1, err2); err != nil {
		tb.Error(err)
		return
	}
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Dir: d, Files: []*os.File{nil, out, serr}})
	if err == nil {
		_, err = p.Wait()
	}
	record := os.WriteFile(d+"/record.json", []byte(`{"task":"x","exit":0}`), 0o666)
	if err := errors.Join(err, record, out.Close(), serr.Close()); err != nil {
		tb.Error(err)
	}
}
