package step

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// Command is the argument with which the pilot program runs a step.
const Command = "step"

// ExitUnable is the exit status of a step whose job could not be started on its worker. A probe does not use this
// status, because it would make the run fail.
const ExitUnable = 126

// Blind is the prefix of a probe's output if its worker does not see the job's directory; the reason follows. If the
// worker sees it, the probe prints nothing.
const Blind = "blind: "

// Run runs the job whose order is in the file named by the worker, and returns the status with which the job's process
// ended. An error means that the job was not started; its text is a sentence for the user.
func Run() (syscall.WaitStatus, error) {
	runtime.LockOSThread() // the kernel kills the script when the thread that started it ends
	o, err := Read(os.Getenv(corral.NoteVariable))
	if err != nil {
		return 0, err
	}
	i, err := instanceOf(o, os.Getenv)
	if err != nil {
		return 0, err
	}
	err = o.Place.visible(i.host)
	if err != nil && o.Probe {
		_, err = fmt.Println(Blind + err.Error())
	}
	if err != nil || o.Probe {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the parent of the job's orphans: %w", err)
	}
	// From here on, orphans of the script become children of this process, and are killed when it ends.
	p := process{order: o, instance: i, began: time.Now(), asked: make(chan os.Signal, 1)}
	// When the time is up or the job is cancelled, the worker asks all descendants of this process to end: the script
	// receives the signal itself.
	signal.Notify(p.asked, syscall.SIGTERM)
	if err := p.start(); err != nil {
		return 0, err
	}
	return p.wait(), nil
}

// A process is the running script of a job.
type process struct {
	order    Order
	instance instance
	began    time.Time
	asked    chan os.Signal
	script   string // the script's file
	pid      int
	started  time.Time // when the script was started
	stderr   *os.File
}

// start starts the script.
func (p *process) start() error {
	syscall.Umask(p.order.Limits.Umask)
	in, out, serr, err := p.open()
	if err != nil {
		return err
	}
	defer in.Close() // the output files stay open: this process may write to them at the end
	p.stderr = serr
	if p.script, err = p.order.Script.write(); err != nil {
		return err
	}
	// The limits are for the script: this process could not work with, for example, ten megabytes of address space.
	back, err := lower(p.order.Limits.Soft)
	if err != nil {
		return err
	}
	p.pid, err = syscall.ForkExec(p.script, append([]string{p.script}, p.order.Script.Args...), &syscall.ProcAttr{
		Dir: p.order.Place.Directory, Env: p.order.environ(p.instance, os.Environ(), p.began),
		Files: []uintptr{in.Fd(), out.Fd(), serr.Fd()}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	back()
	p.started = time.Now()
	if err != nil {
		os.Remove(p.script)
		line, _, _ := strings.Cut(p.order.Script.Text, "\n")
		err = fmt.Errorf("the job's script cannot be executed (%w): it begins with %.200q", err, line)
		fmt.Fprintln(serr, "slurmstepd: error:", err)
	}
	return err
}

// open opens the files of the job's streams in its directory, with the names that Slurm would use. After an error this
// process ends, with its files.
func (p *process) open() (in, out, serr *os.File, err error) {
	s, names := p.order.Streams, p.order.names(p.instance)
	path := func(pattern string) string {
		name := notation.Expand(pattern, names)
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.order.Place.Directory, name)
		}
		return name
	}
	file := func(what, name string, mode int) *os.File {
		var f *os.File
		if err == nil { // after an error, no file is created
			if f, err = os.OpenFile(name, mode, 0o666); err != nil {
				err = fmt.Errorf("the job's standard %s: %w", what, err)
			}
		}
		return f
	}
	// As in Slurm: a script never reads from the standard input of sbatch.
	input := os.DevNull
	if s.Input != "" {
		input = path(s.Input)
	}
	// Two streams may be the same file under different names, and several tasks of an array may share a file.
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !s.Append {
		mode |= os.O_TRUNC
	}
	in, out = file("input", input, os.O_RDONLY), file("output", path(s.Output), mode)
	if serr = out; s.Error != "" && path(s.Error) != path(s.Output) {
		serr = file("error", path(s.Error), mode)
	}
	return in, out, serr, err
}

// write writes the script to a file in the task's own directory; the file is removed together with that directory.
func (s Script) write() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the task's directory: %w", err)
	}
	// The name is Slurm's: scripts print it as $0, and some check for it.
	name := filepath.Join(dir, "slurm_script")
	if err := os.WriteFile(name, []byte(s.Text), 0o700); err != nil {
		return "", fmt.Errorf("writing the job's script: %w", err)
	}
	return name, os.Chmod(name, 0o700) // regardless of the umask
}

// wait waits for the script, and kills its remaining descendants.
func (p *process) wait() syscall.WaitStatus {
	ended := make(chan struct{})
	go p.warn(ended)
	var status syscall.WaitStatus
	// The worker measures the job's resource usage, including this process and all its descendants.
	for { // this also reaps orphaned descendants of the script
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == p.pid || err != nil && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	close(ended)
	killAll()
	os.Remove(p.script)
	return status
}

// warn sends the signal that the job's user requested before the time limit, and notes in the output why the job was
// ended.
func (p *process) warn(ended <-chan struct{}) {
	var due <-chan time.Time
	w := p.order.Limits.Warning
	if w != nil && p.order.Limits.Time > 0 {
		t := time.NewTimer(max(0, time.Duration(p.order.Limits.Time)-w.Before))
		defer t.Stop()
		due = t.C
	}
	for {
		select {
		case <-ended:
			return
		case <-due:
			sig := syscall.Signal(w.Signal)
			if w.Batch {
				_ = syscall.Kill(p.pid, sig) // it may have just ended; its pid is not reused before ended
				continue
			}
			// Slurm signals the job's steps, and the shell that runs the script only with B:. Here, all processes
			// started by the script count as its steps.
			for _, pid := range below(p.pid) {
				_ = syscall.Kill(pid, sig)
			}
		case <-p.asked:
			p.end()
		}
	}
}

// early is the time after a script's start within which it may have missed a signal that its step received, because the
// signal was sent before the script existed. The script may receive the signal twice, which is harmless because it has
// nothing to clean up so soon.
const early = 200 * time.Millisecond

// end notes in the job's output why the job was asked to end.
func (p *process) end() {
	if time.Since(p.started) < early {
		_ = syscall.Kill(p.pid, syscall.SIGTERM)
	}
	// The worker does not report the reason. But the worker measures the time limit from the start of this process, so
	// an earlier signal has another reason.
	why := ""
	if limit := time.Duration(p.order.Limits.Time); limit > 0 && age() >= limit {
		why = " DUE TO TIME LIMIT"
	}
	fmt.Fprintf(p.stderr, "slurmstepd: error: *** JOB %d ON %s CANCELLED AT %s%s ***\n",
		p.instance.id, p.instance.host, time.Now().Format("2006-01-02T15:04:05"), why)
}

// age returns the time for which this process has run, rounded up by at most a hundredth of a second.
func age() time.Duration {
	var now unix.Timespec
	began, ok := proc.Began(os.Getpid())
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil || !ok {
		return 0
	}
	return time.Duration(now.Nano()) - began
}

// End ends this process in the same way as the job's script: with the script's status, or by the same signal.
func End(status syscall.WaitStatus) {
	// The worker distinguishes a status from a signal, and so does Slurm: "137:0" means that a program in the script
	// was killed, and "0:9" that the script itself was killed. Clients regard the first as a failure of the program,
	// and the second as a failure of the machine.
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	// Go's runtime handles most signals, whereas a shell that has just started handles none.
	kill := fmt.Sprintf("kill -%d $$", status.Signal())
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", kill}, os.Environ())
	os.Exit(128 + int(status.Signal()))
}

// killAll kills the descendants of this process, and returns when none is left. Every orphaned descendant becomes this
// process's child, so nothing of the job is left when this process has no children.
func killAll() {
	// Usually no process is left, which a single call shows. Scanning the machine's processes takes a hundred times as
	// long, and is repeated while processes remain that may have started others in the meantime.
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || pid > 0:
			continue
		case err != nil: // ECHILD
			return
		}
		for _, pid := range below(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have just ended; its pid is not reused until we wait
		}
		_, _ = syscall.Wait4(-1, nil, 0, nil)
	}
}

// below returns the descendants of a process, without the process itself.
func below(root int) (found []int) {
	children := map[int][]int{}
	for _, p := range proc.All() {
		children[p.Parent] = append(children[p.Parent], p.ID)
	}
	found = children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
