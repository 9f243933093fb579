package pilot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	hostSilence = time.Minute             // without an ask for so long, a host takes its supervisor for lost
	hostGrace   = 1750 * time.Millisecond // from telling the worker to leave to killing it; less than attempt.Grace
	hostLock    = 20 * time.Second        // for an earlier host of the same worker to be gone
)

// A host is what runs on every node of a job but the first: it checks the node, keeps one worker process there, and
// ends what that leaves behind. It is to its worker what the supervisor is to those of its own node, and decides
// nothing else: when it returns the worker is over, and the supervisor says whether another host follows. Once it has
// returned, no process that descends from it is left, whatever became of the supervisor.
type host struct {
	lg     *slog.Logger
	order  process.HostOrder
	pipe   *process.Pipe // to and from the supervisor
	group  *process.Group
	child  *process.Child          // nil: not started yet, or never
	called chan process.CalledBack // the last answer to callBack

	quiet   time.Duration // since the last ask, without the time in which this process was stopped
	stepped time.Time
	beatAt  time.Time    // when the last empty word was said
	killAt  time.Time    // zero: the host stays
	why     process.Word // the host's own reason to leave
}

// Host is the program on another node. It returns once nothing is left on it; the end of ctx says that the site takes
// the node back.
func Host(ctx context.Context, lg *slog.Logger, in io.Reader, out io.Writer) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // from a supervisor that is gone; there is still work to do here
	defer signal.Stop(ignored)
	if err := process.Hide(); err != nil {
		return err
	}
	h := &host{
		lg: lg, pipe: process.NewPipe(in, out), group: process.NewGroup(), called: make(chan process.CalledBack, 1),
	}
	last := h.serve(ctx)
	h.pipe.Conclude(last)
	if last.Error != "" {
		return errors.New(last.Error)
	}
	return nil
}

// serve returns the host's last word. It begins with the time by its clock, and waits for its order. Then it takes the
// lock of its worker, and checks the node while it already listens to the supervisor.
func (h *host) serve(ctx context.Context) process.Word {
	h.pipe.Say(process.Word{Hello: &process.Hello{Now: time.Now(), Host: hostName(), PID: os.Getpid()}})
	if !h.takeOrder(ctx) {
		return process.Word{Left: attempt.LeftAsked}
	}
	for name, value := range h.order.Env {
		_ = os.Setenv(name, value) // fails only for a name that no environment has
	}
	if err := process.AdoptOrphans(); err != nil {
		return h.unfit(err)
	}
	lock, err := lockWorker(ctx, h.order.Holder, h.order.ID)
	if err != nil {
		return h.unfit(err)
	}
	defer lock.Close()
	fit, cancel := context.WithCancel(ctx)
	defer cancel()
	checked := make(chan error, 1)
	go func() { checked <- h.check(fit) }()
	defer func() {
		if err := atomicfile.RemoveAll(h.order.Scratch); err != nil {
			h.lg.Warn("the scratch directory was left", "error", err)
		}
	}()
	last := h.watch(ctx, checked, lock)
	h.group.End()
	return last
}

// takeOrder waits for the order; not ok: there will be none. Empty asks, which only show that the supervisor is there,
// may come before it.
func (h *host) takeOrder(ctx context.Context) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, hostSilence)
	defer cancel()
	for {
		select {
		case a, more := <-h.pipe.Asks:
			if a.Host != nil {
				h.order = *a.Host
				return true
			}
			if !more || a.Leave {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// watch returns the host's last word, when the worker is gone or will not be started. The worker is started once the
// node has been checked, and never if the host has been asked to leave by then. A signal of the site outweighs what the
// worker said: it may have left because of the same signal.
func (h *host) watch(ctx context.Context, checked <-chan error, lock *os.File) process.Word {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	stop, asks := ctx.Done(), h.pipe.Asks
	h.stepped = time.Now()
	for over := false; !over; {
		select {
		case <-children:
		case <-time.After(tick):
		case err := <-checked:
			if err == nil && h.killAt.IsZero() {
				h.child, err = h.group.Start(h.order.Order, lock) // which the worker then holds too
			}
			if err != nil {
				return h.unfit(err)
			}
		case s := <-h.group.Heard():
			h.pass(s)
		case a, ok := <-asks:
			if !ok {
				asks = nil
			}
			h.obey(a, ok)
		case <-stop:
			stop = nil
			h.leave(process.Word{Left: attempt.LeftTerminated})
		}
		over = h.step(time.Now())
		if h.child == nil && !h.killAt.IsZero() {
			return h.why
		}
	}
	last := h.child.Last
	if last.Left == "" {
		last = process.Word{Error: h.child.Obituary()}
	}
	if ctx.Err() != nil {
		last.Left = attempt.LeftTerminated
	}
	return last
}

// step does whatever is due, and reports whether the worker is gone. A supervisor that is stopped, and not gone, cannot
// be told from one that the network has cut off; either way its tasks may soon be done elsewhere.
func (h *host) step(now time.Time) (over bool) {
	h.quiet += min(now.Sub(h.stepped), process.WordGap)
	h.stepped = now
	over = len(h.group.Collect()) > 0
	if h.quiet > hostSilence {
		h.leave(process.Word{Error: fmt.Sprintf("its supervisor said nothing for %s", hostSilence)})
	}
	for _, c := range h.group.KillHung(now, h.order.HungAfter) {
		h.pipe.Say(process.Word{Note: c.Last.Error + " and is killed"})
	}
	if h.child == nil && now.Sub(h.beatAt) >= process.WordGap { // checks take longer than the supervisor bears silence
		h.beatAt = now
		h.pipe.Say(process.Word{})
	}
	if !h.killAt.IsZero() && now.After(h.killAt) {
		h.group.Kill()
	}
	return over
}

// obey does what the supervisor asks; not ok: the supervisor is gone. Whatever it asks shows that it is there.
func (h *host) obey(a process.Ask, ok bool) {
	h.quiet = 0
	switch {
	case !ok, a.Leave:
		h.leave(process.Word{Left: attempt.LeftAsked})
	case a.CalledBack != nil:
		select { // nothing waits for an answer that is still there
		case <-h.called:
		default:
		}
		h.called <- *a.CalledBack
	case a.Drain && h.child != nil:
		h.child.Tell(a)
	case a.Drain: // nothing runs yet
		h.leave(process.Word{Left: attempt.LeftDrained})
	}
}

// leave has the worker leave, and gives it hostGrace for that. The first reason is kept.
func (h *host) leave(why process.Word) {
	if !h.killAt.IsZero() {
		return
	}
	h.killAt, h.why = time.Now().Add(hostGrace), why
	h.group.Tell(process.Ask{Leave: true})
}

// pass passes on what the worker said. Its last word waits: the host says that when nothing is left.
func (h *host) pass(s process.Said) {
	if h.group.Note(s) && !s.Word.Last() {
		h.pipe.Say(*s.Word)
	}
}

// unfit is the last word of a host whose node cannot have a worker. It is not started again: the reason would be the
// same.
func (h *host) unfit(err error) process.Word {
	return process.Word{Left: attempt.LeftUnable, Error: err.Error()}
}

// lockWorker waits until no earlier host of the same worker is on this machine, nor its worker. A host that lost its
// supervisor may still be clearing away; the tasks that it kills must not meet themselves being done again. The lock is
// a name in the kernel, which leaves nothing behind: when its holders die it is free.
func lockWorker(ctx context.Context, holder, id string) (*os.File, error) {
	name := "@corral-" + holder + "-" + filepath.Base(id)
	for by := time.Now().Add(hostLock); ; {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err == nil {
			defer l.Close()
			return l.File()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(by) {
			return nil, fmt.Errorf("an earlier process of worker %s is still there: %w", id, err)
		}
		if !retry.For(ctx, tick) {
			return nil, ctx.Err()
		}
	}
}

// carried are the variables that a host takes over from the first node: those that tasks get, and the one by which a
// site limits ports.
func carried() map[string]string {
	env := map[string]string{}
	for _, name := range strings.Fields("PATH LANG CORRAL_JOB_TAG CORRAL_JOB_DIR " + condorworker.PortsVariable) {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}
