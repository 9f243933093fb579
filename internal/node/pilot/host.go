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
	hostSilence = time.Minute             // without a message for this long, a host considers its supervisor lost
	hostGrace   = 1750 * time.Millisecond // from asking the worker to leave to killing it; less than attempt.Grace
	hostLock    = 20 * time.Second        // to wait for the end of an earlier host of the same worker
)

// A host runs on every node of a job except the first: it checks the node, runs one worker process there, and ends the
// remaining processes. It handles its worker as the supervisor handles the workers on its own node, and makes no other
// decisions: when a host returns, the worker has ended, and the supervisor decides whether to start another host. When
// a host has returned, none of its descendants is left, even if the supervisor has died.
type host struct {
	lg     *slog.Logger
	order  process.HostOrder
	pipe   *process.Pipe // to and from the supervisor
	group  *process.Group
	child  *process.Child          // nil: not started
	called chan process.CalledBack // the last answer to callBack

	quiet   time.Duration // time since the last message, without the time in which this process was suspended
	stepped time.Time
	beatAt  time.Time    // when the last empty word was sent
	killAt  time.Time    // zero: the host stays
	why     process.Word // the host's own reason to leave
}

// Host is the program that runs on another node. It returns when none of its processes is left there; the end of ctx
// means that the site reclaims the node.
func Host(ctx context.Context, lg *slog.Logger, in io.Reader, out io.Writer) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // from writing to a lost supervisor; there is still work to do here
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

// serve returns the host's last word. It first sends the time of its clock, and waits for its order. Then it takes the
// lock of its worker, and checks the node while it listens to the supervisor.
func (h *host) serve(ctx context.Context) process.Word {
	h.pipe.Say(process.Word{Hello: &process.Hello{Now: time.Now(), Host: hostName(), PID: os.Getpid()}})
	if !h.takeOrder(ctx) {
		return process.Word{Left: attempt.LeftAsked}
	}
	for name, value := range h.order.Env {
		_ = os.Setenv(name, value) // fails only for an invalid name
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
			h.lg.Warn("the scratch directory could not be removed", "error", err)
		}
	}()
	last := h.watch(ctx, checked, lock)
	h.group.End()
	return last
}

// takeOrder waits for the order; if ok is false, no order will arrive. Empty messages, which only show that the
// supervisor is running, may precede the order.
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

// watch returns the host's last word, when the worker has ended or will not be started. The worker is started after the
// node has been checked, unless the host has been asked to leave in the meantime. A signal from the site overrides the
// worker's last word: the worker may have left because of the same signal.
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
				h.child, err = h.group.Start(h.order.Order, lock) // the worker then also holds the lock
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

// step does all work that is due, and reports whether the worker has ended. A suspended supervisor cannot be
// distinguished from a supervisor that the network has cut off; in either case the worker's tasks may soon be repeated
// elsewhere.
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
	if h.child == nil && now.Sub(h.beatAt) >= process.WordGap { // the supervisor does not tolerate silence
		h.beatAt = now
		h.pipe.Say(process.Word{})
	}
	if !h.killAt.IsZero() && now.After(h.killAt) {
		h.group.Kill()
	}
	return over
}

// obey handles a message of the supervisor; if ok is false, the supervisor has ended. Any message shows that the
// supervisor is running.
func (h *host) obey(a process.Ask, ok bool) {
	h.quiet = 0
	switch {
	case !ok, a.Leave:
		h.leave(process.Word{Left: attempt.LeftAsked})
	case a.CalledBack != nil:
		select { // an unread answer has no reader
		case <-h.called:
		default:
		}
		h.called <- *a.CalledBack
	case a.Drain && h.child != nil:
		h.child.Tell(a)
	case a.Drain: // nothing is running yet
		h.leave(process.Word{Left: attempt.LeftDrained})
	}
}

// leave asks the worker to leave within hostGrace. The first reason is kept.
func (h *host) leave(why process.Word) {
	if !h.killAt.IsZero() {
		return
	}
	h.killAt, h.why = time.Now().Add(hostGrace), why
	h.group.Tell(process.Ask{Leave: true})
}

// pass forwards the worker's words. Its last word is delayed: the host sends it when no process is left.
func (h *host) pass(s process.Said) {
	if h.group.Note(s) && !s.Word.Last() {
		h.pipe.Say(*s.Word)
	}
}

// unfit returns the last word of a host whose node is not suitable for a worker. The host is not restarted: the reason
// would be the same.
func (h *host) unfit(err error) process.Word {
	return process.Word{Left: attempt.LeftUnable, Error: err.Error()}
}

// lockWorker waits until no earlier host of the same worker, nor its worker, is on this machine. A host that lost its
// supervisor may still be cleaning up; the tasks that it kills must not run at the same time as their repetition. The
// lock is a socket name in the kernel, which leaves nothing behind: it is free when its holders have ended.
func lockWorker(ctx context.Context, holder, id string) (*os.File, error) {
	name := "@corral-" + holder + "-" + filepath.Base(id)
	for by := time.Now().Add(hostLock); ; {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err == nil {
			defer l.Close()
			return l.File()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(by) {
			return nil, fmt.Errorf("an earlier process of worker %s is still running: %w", id, err)
		}
		if !retry.For(ctx, tick) {
			return nil, ctx.Err()
		}
	}
}

// carried returns the variables that a host inherits from the first node: the variables passed to tasks, and the
// variable with which a site limits ports.
func carried() map[string]string {
	env := map[string]string{}
	for _, name := range strings.Fields("PATH LANG CORRAL_JOB_TAG CORRAL_JOB_DIR " + condorworker.PortsVariable) {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}
