package pool

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// journalSink is a sink as a run has one: it writes a line for each event and makes the writes of a
// call one.
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

func (s *journalSink) Assigned(worker string, jobs []Key) error {
	for _, k := range jobs {
		fmt.Fprintf(s.w, `{"assigned":%d,"worker":%q}`+"\n", k.Seq, worker)
	}
	return s.w.Flush()
}

func (s *journalSink) Finished(results []Result) error {
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

func (s *journalSink) Returned(jobs []Key, started bool, reason string) {
	panic(fmt.Sprint("returned: ", jobs, started, reason))
}

func noop(run corral.RunID, seq int64, dir string) Job {
	return Job{
		Run: run, Seq: seq, Dir: dir, CPUs: 1, MemoryMiB: 100,
		Tasks: []Task{{
			Index: int(seq), ID: "t" + strconv.FormatInt(seq, 10), Attempt: 1,
			Argv: []string{"/bin/true"}, Estimate: time.Second,
		}},
	}
}

func cpuTime(tb testing.TB, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	var name, state string
	var v [20]int64
	fmt.Sscan(string(b), &v[0], &name, &state, &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10], &v[11], &v[12], &v[13], &v[14])
	return time.Duration(v[11]+v[12]) * 10 * time.Millisecond
}

// BenchmarkNoop runs /bin/true through two one-cpu workers, each a process of its own.
func BenchmarkNoop(b *testing.B) {
	c := newCluster(b, Config{})
	var cmds []*exec.Cmd
	for i := range 2 {
		cmds = append(cmds, c.child(b, fmt.Sprintf("bench/%d", i)))
	}
	c.awaitWorkers(b, 2)
	dir := runDir(b)
	sink := newJournalSink(b, b.N)
	c.d.Attach(1, sink)
	jobs := make([]Job, b.N)
	for i := range jobs {
		jobs[i] = noop(1, int64(i), dir)
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

// BenchmarkBareLoop does for each task what must be done, two at a time, and nothing else.
func BenchmarkBareLoop(b *testing.B) {
	dir := runDir(b)
	x, err := newExecutor(WorkerConfig{ID: "bare/0"}, "host")
	if err != nil {
		b.Fatal(err)
	}
	defer x.close()
	next := make(chan Job, 256)
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
	if err := os.MkdirAll(d, 0o777); err != nil {
		tb.Fatal(err)
	}
	out, _ := os.Create(d + "/stdout")
	errf, _ := os.Create(d + "/stderr")
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Dir: d, Files: []*os.File{nil, out, errf}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		tb.Fatal(err)
	}
	p.Wait()
	out.Close()
	errf.Close()
	os.WriteFile(d+"/record.json", []byte(`{"task":"x","exit":0}`), 0o666)
}

var _ = context.Background
