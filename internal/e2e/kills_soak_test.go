//go:build soak

package e2e

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Whatever is killed in the middle of a run of 500 tasks, at any instant: the run succeeds, its files are those of an
// undisturbed one, and no task is counted twice. The instants are so many tasks done, so that they mean the same on
// every machine; SEED repeats them.
func TestKillsEmbedded(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_LEASE=5s")
	u.must("up")
	m := matrix{user: u, cluster: "default", workers: 4, glidein: []string{"--site", "local", "--hosts", "2", "--cpus", "1"}}
	m.play(
		cell{name: "worker", victim: func(w corral.Worker, _ int) int { return w.PID }},
		cell{name: "pilot", victim: func(w corral.Worker, _ int) int { return parent(w.PID) }},
		cell{name: "corrald", victim: func(corral.Worker, int) int { return u.running() }},
		cell{name: "client", victim: func(_ corral.Worker, client int) int { return client }},
	)
	u.must("down")
}

// A cell is what is killed: one of the processes of a worker that has tasks, corrald, or the client that waits.
type cell struct {
	name   string
	victim func(w corral.Worker, client int) int
	twice  bool // a job that was started may be started again in the same attempt
}

// A matrix is the runs of one cluster.
type matrix struct {
	*user
	cluster string
	glidein []string // flags of each of two glideins
	workers int      // of both
	flags   []string // of corral run
	numbers int      // of the runs so far
	held    []string // its glideins at present
}

// supply sees to it that all workers are there. A pilot that was killed some times in a row comes again after minutes
// only; then other glideins take the place of both, behind one that ends well: three bad ends in a row would keep the next
// from the site.
func (m *matrix) supply() {
	m.t.Helper()
	if len(m.held) > 0 && m.connected() == m.workers {
		return
	}
	if len(m.held) > 0 {
		m.must(append([]string{"glidein", "remove", "--now", "--wait"}, m.held...)...)
		good := m.must(append([]string{"glidein", "create", "--idle", "1s", "-q"}, m.glidein...)...)
		m.must("glidein", "wait", good, "--for", "FINISHED")
	}
	m.held = nil
	for range 2 {
		m.held = append(m.held, m.must(append([]string{"glidein", "create", "--resubmit", "forever", "--wait", "-q"}, m.glidein...)...))
	}
	m.until("all workers", 5*time.Minute, func() bool { return m.connected() == m.workers })
}

// play kills what each cell says as often as KILLS does, once by default, and compares with a run that nothing disturbs.
// CELL=name plays that one only.
func (m *matrix) play(cells ...cell) {
	m.t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	m.t.Logf("SEED=%d repeats these instants", seed)
	rounds := kills(m.t)
	undisturbed := m.disturbed(cell{}, 0)
	m.t.Logf("| killed | rounds | tasks begun again | seconds more, median | most |")
	for number, c := range cells {
		if only := os.Getenv("CELL"); only != "" && only != c.name {
			continue
		}
		var again []int
		var longer []time.Duration
		for round := range rounds { // each with an instant of its own, whatever else is played
			at := 1 + rand.New(rand.NewPCG(seed, uint64(number)<<32|uint64(round))).IntN(manyTasks-1)
			got := m.disturbed(c, at)
			if got.digest != undisturbed.digest {
				m.t.Errorf("%s killed after %d tasks: the files differ", c.name, at)
			}
			again, longer = append(again, got.again), append(longer, got.took-undisturbed.took)
		}
		m.t.Logf("| %s | %d | %s | %.1f | %.1f |", c.name, rounds, spread(again), quantile(longer, 0.5).Seconds(), quantile(longer, 1).Seconds())
	}
}

// An outcome is what a run left.
type outcome struct {
	digest string
	took   time.Duration
	again  int // tasks that were begun more than once
}

// manyTasks are those of a run: four layers and one that reads what the last of them wrote.
const (
	manyTasks  = 500
	layerWidth = 125
)

// layers makes the tasks of a run. Each mark counts an execution, where nobody cleans up.
func layers(marks string) (tasks []task) {
	for i := range manyTasks - 1 {
		k := task{id: fmt.Sprintf("t%03d", i), estimate: 100 * time.Millisecond}
		k.out = []string{k.id + ".txt"}
		if i >= layerWidth {
			above := i/layerWidth*layerWidth - layerWidth
			for _, j := range []int{i % layerWidth, (7*i + 3) % layerWidth} {
				up := fmt.Sprintf("t%03d", above+j)
				if len(k.parents) == 0 || k.parents[0] != up {
					k.parents, k.in = append(k.parents, up), append(k.in, up+".txt")
				}
			}
		}
		k.script = fmt.Sprintf("sleep 0.05; cat %s /dev/null | cksum >%[2]s.txt; echo %[2]s >>%[2]s.txt; echo >>%[3]s/%[2]s",
			strings.Join(k.in, " "), k.id, marks)
		tasks = append(tasks, k)
	}
	last := task{id: "last", out: []string{"last.txt"}, estimate: 100 * time.Millisecond}
	for _, k := range tasks[3*layerWidth:] {
		last.parents, last.in = append(last.parents, k.id), append(last.in, k.out...)
	}
	last.script = fmt.Sprintf("cat %s >last.txt; echo >>%s/last", strings.Join(last.in, " "), marks)
	return append(tasks, last)
}

// disturbed runs the workflow with a client that waits, kills what a cell says when so many tasks are done, and checks
// what came of it.
func (m *matrix) disturbed(c cell, at int) outcome {
	m.t.Helper()
	m.numbers++
	name := fmt.Sprintf("many%d", m.numbers)
	marks := filepath.Join(m.dir, "open", name)
	if err := os.MkdirAll(marks, 0o777); err != nil {
		m.t.Fatal(err)
	}
	_ = os.Chmod(marks, 0o777) // for tasks of another user
	m.supply()
	asked := append([]string{"run", m.workflow(name, layers(marks)...), "--cluster", m.cluster, "--key", name, "-q"}, m.flags...)
	client := m.command(asked...)
	if err := client.Start(); err != nil {
		m.t.Fatal(err)
	}
	var run corral.Run
	if c.name != "" {
		m.until("the instant", 5*time.Minute, func() bool {
			all := read[[]corral.Run](m.user, "runs", "list", "--last", "1")
			if len(all) == 1 && all[0].Workflow == name {
				run = all[0]
			}
			return run.Tasks.Done >= at
		})
		m.kill(c.victim(m.busy(), client.Process.Pid))
		m.must("up") // which does nothing while corrald lives
	}
	_ = client.Wait() // one that was not killed ends with its run, or when corrald is away
	return m.checked(c, at, m.must(asked...), marks)
}

func (m *matrix) connected() (n int) {
	for _, w := range m.all() {
		if w.Connected {
			n++
		}
	}
	return n
}

func (m *matrix) all() []corral.Worker {
	m.t.Helper()
	return read[[]corral.Worker](m.user, "cluster", "workers", m.cluster)
}

// busy returns a worker, one that has tasks if there is one: at the end of a run there may be none.
func (m *matrix) busy() (found corral.Worker) {
	m.t.Helper()
	m.until("a worker", 5*time.Minute, func() bool {
		for _, w := range m.all() {
			if w.PID != 0 && (found.PID == 0 || w.RunningTasks > found.RunningTasks) {
				found = w
			}
		}
		return found.PID != 0
	})
	return found
}

// checked tells what a run left, once it is seen to be whole.
func (m *matrix) checked(c cell, at int, id, marks string) (got outcome) {
	m.t.Helper()
	r := m.run(id)
	got.took = r.EndedAt.Sub(r.CreatedAt)
	bad := func(format string, args ...any) {
		m.t.Helper()
		m.t.Errorf("%s killed after %d tasks: %s", c.name, at, fmt.Sprintf(format, args...))
	}
	if r.State != corral.RunSucceeded || r.Tasks.Done != manyTasks || r.Tasks.Total != manyTasks {
		bad("run %s is %s with %+v: %s", id, r.State, r.Tasks, r.Reason)
		return got
	}
	tasks := read[[]api.TaskStatus](m.user, "runs", "tasks", id)
	if len(tasks) != manyTasks {
		bad("%d tasks are listed", len(tasks))
	}
	digest := sha256.New()
	for _, k := range tasks {
		b, _ := os.ReadFile(filepath.Join(marks, k.ID))
		most := k.Attempts
		if c.twice {
			most++
		}
		n := strings.Count(string(b), "\n")
		if n < 1 || n > most {
			bad("task %s was executed %d times in %d attempts", k.ID, n, k.Attempts)
		}
		if k.Attempts > 1 || n > 1 {
			got.again++
		}
		text, err := os.ReadFile(filepath.Join(r.Dir, "data", k.ID+".txt"))
		if err != nil {
			bad("%v", err)
		}
		fmt.Fprintf(digest, "%s %d\n%s", k.ID, len(text), text)
	}
	done := strings.Count(m.must("runs", "log", id), "SUCCEEDED")
	if done != 1 {
		bad("the run has ended %d times", done)
	}
	got.digest = fmt.Sprintf("%x", digest.Sum(nil))
	m.must("runs", "remove", id, "--purge")
	return got
}

func spread(n []int) string {
	return fmt.Sprintf("%d–%d", quantile(n, 0), quantile(n, 1))
}

// quantile is one of the values: 0 is the least, 1 the greatest.
func quantile[T cmp.Ordered](all []T, q float64) T {
	return slices.Sorted(slices.Values(all))[int(q*float64(len(all)-1))]
}

// parent returns a process's parent.
func parent(pid int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	p, _ := strconv.Atoi(fields[1])
	return p
}
