package condorworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	lookGap    = 100 * time.Millisecond  // interval for checking the daemons' log while something depends on it
	lookSlow   = 500 * time.Millisecond  // otherwise: hundreds of workers may share a machine
	retellTime = 3 * time.Second         // for the daemons to announce the drain to the pool; that takes 1 s
	quitTime   = 1500 * time.Millisecond // for an orderly end of the daemons; less than the supervisor's grace period
)

// daemons are a condor_master with its descendants, and their state. This process is their subreaper, so that orphaned
// descendants remain its own and can be ended.
type daemons struct {
	lg     *slog.Logger
	out    *process.Pipe
	config condor.GlideinConfig
	log    *condor.GlideinLog
	master int    // its pid
	ended  string // how the master ended, once it has been reaped
	killed bool   // by a signal

	entry    entry
	toldAt   time.Time // when idleness was last reported
	draining bool
	// A drained worker stays until drainBy so that its daemons can notify the pool, which would otherwise continue to
	// match its old ad.
	drainBy time.Time
	fault   *process.Word // why the worker leaves on its own; nil: it does not leave
	killAt  time.Time     // when remaining processes are killed
}

// Serve joins the HTCondor pool named in the order, and returns the worker's last word. If a relay connects this node
// with the pool, a forwarder on this node takes the pool's place.
func Serve(
	ctx context.Context, lg *slog.Logger, o process.Order, drain <-chan struct{}, out *process.Pipe,
) process.Word {
	if way := o.Join.Way; len(way.Relays) > 0 {
		f, err := relay.Forward(lg, way.Collector, way.Relays, relay.NewRequest(relay.Pool, o.Tag, o.Token))
		if err != nil {
			return process.Word{Left: attempt.LeftUnable, Error: err.Error()}
		}
		defer f.Close()
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	w := &daemons{lg: lg, out: out, config: offer(o, time.Now())}
	err := w.start(o.Join.Secret)
	switch {
	case errors.Is(err, condor.ErrRoot): // the same on every node
		return process.Word{Left: attempt.LeftRefused, Error: "the pilot runs as root: " + err.Error()}
	case err != nil:
		return process.Word{Left: attempt.LeftUnable, Error: "starting HTCondor: " + err.Error()}
	}
	defer w.log.Close()
	w.watch(ctx, children, drain)
	process.EndDescendants()
	w.log.Look(time.Now())
	last := w.lastWord(time.Now())
	if last.Error != "" { // HTCondor's logs are removed, the pilot's is kept
		lg.Warn("HTCondor ended", "error", last.Error, "its last lines", w.log.Last())
	}
	return last
}

// watch returns when the master has ended. It returns in no other case: a worker that must leave signals the master,
// and waits for the master's end as usual.
func (w *daemons) watch(ctx context.Context, children <-chan os.Signal, drain <-chan struct{}) {
	stop := ctx.Done()
	for w.ended == "" {
		select {
		case <-children:
		case <-time.After(w.pace()):
		case <-drain:
			drain = nil
			w.drain(time.Now())
		case <-stop:
			stop = nil
			w.leave(time.Now(), process.Word{Left: attempt.LeftAsked})
		}
		w.step(time.Now())
	}
}

// start prepares the daemons' folder and starts the master. The master quits if this process dies: the kernel signals
// it when the thread that started it ends. The goroutine below locks its thread and never returns, so that the thread
// lasts as long as the process.
func (w *daemons) start(secret string) error {
	// Files that an earlier process of this worker left must not be mistaken for the files of this process.
	if err := errors.Join(process.AdoptOrphans(), atomicfile.RemoveAll(w.config.Dir)); err != nil {
		return err
	}
	if _, err := w.config.Prepare(secret); err != nil {
		return err
	}
	cmd, err := w.config.Command()
	if err != nil {
		return err
	}
	printed, err := os.Create(w.errorFile())
	if err != nil {
		return err
	}
	defer printed.Close()
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		return describeStart(cmd, err)
	}
	w.master = cmd.Process.Pid
	_ = cmd.Process.Release() // Reap waits for it
	w.log = w.config.Log()
	w.entry = newEntry(time.Now(), w.config.Times.End)
	return nil
}

// errorFile returns the file for output that the daemons print before they have a log, for example about a missing
// library.
func (w *daemons) errorFile() string { return filepath.Join(w.config.Dir, "log", "stderr") }

// describeStart explains the kernel's error for an existing file that is reported as not found.
func describeStart(cmd *exec.Cmd, err error) error {
	if _, there := os.Stat(cmd.Path); there == nil && errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%w: its loader is not on this node: the package is for another C library", err)
	}
	return err
}

// pace returns the interval until the next check of the daemons' log.
func (w *daemons) pace() time.Duration {
	if w.entry.in && !w.draining && w.fault == nil {
		return lookSlow
	}
	return lookGap
}

// step does all work that is due. Faults are checked only while the worker is meant to stay: a draining worker ends
// when its jobs have ended, and a leaving worker is killed when its time for an orderly end is over. All information
// comes from the daemons' log and from the end of the master.
func (w *daemons) step(now time.Time) {
	if status, ok := process.Reap()[w.master]; ok {
		w.ended, w.killed = "condor_master "+process.Ending(status), status.Signaled()
	}
	w.log.Look(now)
	registered := w.entry.note(w.log, now)
	switch fault := w.entry.fault(w.log, w.config.Network.Collector.String(), now); {
	case w.fault != nil:
		if now.After(w.killAt) {
			process.KillDescendants()
		}
	case w.ended != "":
	case w.draining && w.log.Reread && !w.log.Busy() && (w.log.Retold || now.After(w.drainBy)):
		w.signal(syscall.SIGTERM) // nothing runs, and nothing will start
	case fault != nil:
		if fault.Left != attempt.LeftRefused {
			fault.Error += w.because()
		}
		w.leave(now, *fault)
	default:
		w.tell(registered, now)
	}
}

// tell reports changes of the worker's state to the supervisor. The worker has been idle since its last job ended, or
// since it joined.
func (w *daemons) tell(registered bool, now time.Time) {
	if registered {
		w.out.Say(process.Word{Registered: true})
	}
	if !w.entry.in || now.Sub(w.toldAt) < process.WordGap {
		return
	}
	w.toldAt = now
	since := w.entry.joined
	if w.log.Worked.After(since) {
		since = w.log.Worked
	}
	idle := now.Sub(since)
	w.out.Say(process.Word{Idle: &idle})
}

// drain makes the daemons accept no more jobs. step ends them after the running jobs.
func (w *daemons) drain(now time.Time) {
	w.draining, w.drainBy = true, now.Add(retellTime)
	w.config.Draining, w.config.Attributes["CorralDraining"] = true, true
	if err := w.config.Reconfigure(); err != nil {
		w.leave(now, process.Word{Left: attempt.LeftDrained, Error: "drain: " + err.Error()})
		return
	}
	w.signal(syscall.SIGHUP)
}

// leave ends the daemons at once. Their jobs are returned to the queue.
func (w *daemons) leave(now time.Time, why process.Word) {
	if w.fault != nil {
		return
	}
	w.fault, w.killAt = &why, now.Add(quitTime)
	w.signal(syscall.SIGQUIT)
}

// signal signals the master: SIGHUP makes the daemons reread their configuration, SIGTERM ends them in an orderly way,
// SIGQUIT at once.
func (w *daemons) signal(s syscall.Signal) {
	if w.ended == "" { // otherwise another process may have the pid by now
		_ = syscall.Kill(w.master, s)
	}
}

// lastWord returns the reason why the worker left, after its master has ended. If the master ended on its own within
// one update interval of the worker's end, the worker counts as expired: the master checks the clock only at this
// interval.
func (w *daemons) lastWord(now time.Time) process.Word {
	joined := !w.entry.joined.IsZero()
	switch {
	case w.fault != nil:
		return *w.fault
	case w.draining:
		return process.Word{Left: attempt.LeftDrained}
	case w.killed:
		return process.Word{Error: w.ended}
	case joined && !now.Before(w.config.Times.End.Add(-w.config.Times.Update)):
		return process.Word{Left: attempt.LeftExpired}
	case !joined:
		return process.Word{Left: attempt.LeftUnable, Error: w.ended + w.because()}
	}
	return process.Word{Error: w.ended + w.because()}
}

// because returns HTCondor's last error message, to be appended to a sentence.
func (w *daemons) because() string {
	words := w.log.Words()
	if words == "" {
		b, _ := os.ReadFile(w.errorFile()) // optional
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		words = lines[len(lines)-1]
	}
	if words == "" {
		return ""
	}
	return ": " + words
}
