package executor

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
	"github.com/corral-pilot/corral/internal/kit/proc"
)

// hog returns a shell command that allocates mib MiB of memory and keeps the memory until its input ends.
func hog(mib int) string {
	return "(head -c " + strconv.Itoa(mib<<20) + " /dev/zero; exec sleep 600) | tail"
}

// runLimited runs a shell command with a limit of 100 MiB, using an executor that is configured by made.
func runLimited(t *testing.T, made func(*Executor), command string) execution.Result {
	t.Helper()
	x, err := New("w", "h", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	made(x)
	job := execution.Job{Run: 1, Seq: 1, Dir: t.TempDir(), CPUs: 1, MemoryMiB: 100, Tasks: []execution.Task{
		{ID: "t", Attempt: 1, Argv: []string{"sh", "-c", command}, Timeout: 2 * time.Minute},
	}}
	if err := syscall.Mkdir(job.Dir+"/"+DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	e := x.Begin(&job, &job.Tasks[0])
	e.LimitMemory(job.MemoryLimit(corral.Resources{}))
	return e.Run(func() bool { return true })
}

// watched configures an executor without control groups, as at most sites; grouped lets it use those of this machine.
func watched(*Executor)   {}
func grouped(x *Executor) { x.MeasureBy(cgroup.Open("/")) }

// A task is killed with all its processes when their total memory exceeds the limit, and its result reports the amount.
func TestTaskOverItsMemory(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"one process":              hog(200),
		"two together":             hog(70) + " & " + hog(70),
		"in a session of its own":  "setsid sh -c '" + hog(200) + "' & wait",
		"whose parent has ended":   "(" + hog(200) + " &) ; exec sleep 600",
		"of a task that succeeds":  hog(200) + "; exit 0",
		"of a task that goes on":   "trap '' TERM; " + hog(200) + "; exec sleep 600",
		"in the job's background":  "(sleep 600 &) ; " + hog(200),
		"under another command":    "env -i PATH=\"$PATH\" sh -c '" + hog(200) + "'",
		"that a child's child has": "sh -c 'sh -c \"" + hog(200) + "\"; true'; true",
	} {
		for how, made := range map[string]func(*Executor){"watched": watched, "grouped": grouped} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				r := runLimited(t, made, command)
				if r.Status != execution.Failed || r.Cause != execution.OverMemory || r.MaxRSSKiB < 100<<10 ||
					!strings.HasSuffix(r.Reason, " the 100 MiB of memory that it asked for") {
					t.Errorf("result = %+v, want a failure for memory", r)
				}
			})
		}
	}
}

// A task within its memory limit is not killed, and neither is a task without a limit.
func TestTaskWithinItsMemory(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"head -c 60m /dev/zero | tail -c 10m >/dev/null; sleep 0.5", "true"} {
		for _, made := range []func(*Executor){watched, grouped} {
			if r := runLimited(t, made, command); r.Status != execution.Done || r.Cause != "" {
				t.Errorf("%s: %+v", command, r)
			}
		}
	}
}

// If a memory check is too late, a task that has ended or was cancelled is not reported as killed for its memory use.
func TestEndBeforeTheMemoryCheck(t *testing.T) {
	t.Parallel()
	x, err := New("w", "h", "")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	job := execution.Job{Dir: t.TempDir(), CPUs: 1, Tasks: []execution.Task{{ID: "t", Attempt: 1, Argv: []string{"true"}}}}
	e := x.Begin(&job, &job.Tasks[0])
	e.LimitMemory(1, true)
	r := e.Run(func() bool { return true })
	e.exceed(1<<30, nil)
	if r.Status != execution.Done || e.cause != "" {
		t.Errorf("result = %+v, then %q", r, e.cause)
	}
	e = x.Begin(&job, &job.Tasks[0])
	e.Stop(execution.Cancelled, "its run was cancelled")
	if r = e.Run(func() bool { return true }); r.Status != execution.Cancelled || r.Cause != "" {
		t.Errorf("result = %+v, want cancelled", r)
	}
}

// Shared memory counts once, although it is in the resident set of each process.
func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	// A shell with a long string, and three forked shells that execute no other program.
	cmd := exec.Command("sh", "-c", `x=$(head -c 40000000 /dev/zero | tr '\0' a)
for i in 1 2 3; do (read line <&3; echo $line) & done; echo ready; wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{hold}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer release.Close()
	defer hold.Close()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	tree := proc.Tree(proc.All(), cmd.Process.Pid)
	const mib = 1 << 20
	if r, h := resident(tree), held(tree); len(tree) != 4 || r < 4*38*mib || h < 38*mib || h > 2*38*mib {
		t.Errorf("%d processes: %d MiB resident, %d MiB held; want 4 with four times 38 MiB, held once", len(tree), r/mib, h/mib)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		l    memoryLimit
		used int64
		want string
	}{
		{memoryLimit{300, true}, 612 << 20, "used 612 MiB of the 300 MiB of memory that it asked for"},
		{memoryLimit{300, true}, 300 << 20, "needed more than the 300 MiB of memory that it asked for"},
		{memoryLimit{300, false}, 612 << 20,
			"used 612 MiB of the 300 MiB of memory that its share of the worker allows; request more with memory_mib"},
	} {
		if got := c.l.why(c.used); got != c.want {
			t.Errorf("%+v: %q, want %q", c.l, got, c.want)
		}
	}
}
