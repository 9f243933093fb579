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

// Command is the word by which the pilot program runs a step.
const Command = "step"

// ExitUnable is the exit status of a step whose job could not be started on its worker. A probe does not end with it:
// its run would fail by that.
const ExitUnable = 126

// Blind begins what a probe prints whose worker does not see the job's directory; the reason follows. One that sees it
// prints nothing.
const Blind = "blind: "

// Run runs the job whose order the worker names, and returns how its process ended. An error means that nothing of the
// job was started; it is a sentence for its user.
func Run() (syscall.WaitStatus, error) {
	runtime.LockOSThread() // the kernel ends the script with the thread that started it
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
		return 0, fmt.Errorf("becoming the parent of what the job leaves: %w", err)
	}
	// From here on what the script leaves comes to this process, and dies with it.
	p := process{order: o, instance: i, began: time.Now(), asked: make(chan os.Signal, 1)}
	// The worker asks all that descends from here to end when the time is up, or the job is cancelled: the script hears
	// it itself.
	signal.Notify(p.asked, syscall.SIGTERM)
	if err := p.start(); err != nil {
		return 0, err
	}
	return p.wait(), nil
}

// A process is a job's script that runs.
type process struct {
	order    Order
	instance instance
	began    time.Time
	asked    chan os.Signal
	script   string // its file
	pid      int
	started  time.Time // the script
	stderr   *os.File
}

// start starts the script.
func (p *process) start() error {
	syscall.Umask(p.order.Limits.Umask)
	in, out, serr, err := p.open()
	if err != nil {
		return err
	}
	defer in.Close() // the others stay open: this process has something to say there in the end
	p.stderr = serr
	if p.script, err = p.order.Script.write(); err != nil {
		return err
	}
	// The limits are the script's: this process would not get far with, say, ten megabytes of address space.
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

// open opens the files of the job's streams, in its directory, under the names that it has in Slurm.
func (p *process) open() (in, out, serr *os.File, err error) {
	s, names := p.order.Streams, p.order.names(p.instance)
	path := func(pattern string) string {
		name := notation.Expand(pattern, names)
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.order.Place.Directory, name)
		}
		return name
	}
	// Slurm's own default, too: a script never reads from where sbatch was called.
	input := os.DevNull
	if s.Input != "" {
		input = path(s.Input)
	}
	if in, err = os.Open(input); err != nil {
		return nil, nil, nil, fmt.Errorf("the job's standard input: %w", err)
	}
	// Two streams may be one file by different names, and several tasks of an array may share one.
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !s.Append {
		mode |= os.O_TRUNC
	}
	if out, err = os.OpenFile(path(s.Output), mode, 0o666); err != nil {
		in.Close()
		return nil, nil, nil, fmt.Errorf("the job's standard output: %w", err)
	}
	if s.Error == "" || path(s.Error) == path(s.Output) {
		return in, out, out, nil
	}
	if serr, err = os.OpenFile(path(s.Error), mode, 0o666); err != nil {
		in.Close()
		out.Close()
		return nil, nil, nil, fmt.Errorf("the job's standard error: %w", err)
	}
	return in, out, serr, nil
}

// write writes the script into a file of the task's own directory, which goes with it.
func (s Script) write() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the task's directory: %w", err)
	}
	// The name is Slurm's: scripts show it by $0, and some look for it.
	name := filepath.Join(dir, "slurm_script")
	if err := os.WriteFile(name, []byte(s.Text), 0o700); err != nil {
		return "", fmt.Errorf("writing the job's script: %w", err)
	}
	return name, os.Chmod(name, 0o700) // whatever the umask is
}

// wait waits for the script, and kills what it leaves.
func (p *process) wait() syscall.WaitStatus {
	ended := make(chan struct{})
	go p.warn(ended)
	var status syscall.WaitStatus
	// The resource usage of the job is its worker's to measure, which counts this process and all below it.
	for { // also what descends from the script, and has lost its parent, is waited for
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

// warn sends the signal that the job's user wants before its time is up, and notes in its output why it was ended.
func (p *process) warn(ended <-chan struct{}) {
	var due <-chan time.Time
	w := p.order.Limits.Warning
	if w != nil && p.order.Limits.Time > 0 {
		t := time.NewTimer(max(0, p.order.Limits.Time-w.Before))
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
				_ = syscall.Kill(p.pid, sig) // it may have ended just now; nobody has its number before ended
				continue
			}
			// Slurm signals the job's steps, and the shell that runs the script only if B: says so. Here all that the
			// script has started are its steps.
			for _, pid := range below(p.pid) {
				_ = syscall.Kill(pid, sig)
			}
		case <-p.asked:
			p.end()
		}
	}
}

// early is how soon after its start a script may have missed a signal that its step has heard: it was sent before the
// script was there. Mostly it was not missed; a script that hears it twice so soon has nothing to tidy up.
const early = 200 * time.Millisecond

// end notes in the job's output why the job was asked to end.
func (p *process) end() {
	if time.Since(p.started) < early {
		_ = syscall.Kill(p.pid, syscall.SIGTERM)
	}
	// The worker does not tell. But it counts the time from when it had started this process, so that no earlier
	// signal is for that.
	why := ""
	if limit := p.order.Limits.Time; limit > 0 && age() >= limit {
		why = " DUE TO TIME LIMIT"
	}
	fmt.Fprintf(p.stderr, "slurmstepd: error: *** JOB %d ON %s CANCELLED AT %s%s ***\n",
		p.instance.id, p.instance.host, time.Now().Format("2006-01-02T15:04:05"), why)
}

// age is for how long this process has run, or up to a hundredth of a second more.
func age() time.Duration {
	var now unix.Timespec
	began, ok := proc.Began(os.Getpid())
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil || !ok {
		return 0
	}
	return time.Duration(now.Nano()) - began
}

// End ends this process as the job's script ended: with its status, or by its signal.
func End(status syscall.WaitStatus) {
	// The worker tells a status from a signal, and so does Slurm: "137:0" is a script whose program was killed, "0:9"
	// one that was killed itself. Clients take the first for a failure of the program, and the second for one of the
	// machine.
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	// Go handles most signals; a shell that has just begun handles none.
	kill := fmt.Sprintf("kill -%d $$", status.Signal())
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", kill}, os.Environ())
	os.Exit(128 + int(status.Signal()))
}
