package pilot

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/pool"
)

// HostCommand is the argument with which srun or ssh starts this program on another node of the job.
const HostCommand = "host"

// hostMark is the line after which a host's words begin: login shells and prologues print what they like before it.
const hostMark = "corral pilot host"

const (
	hostSilence = time.Minute             // without an ask a host takes its supervisor for lost
	hostGrace   = 1750 * time.Millisecond // from telling the worker to leave until it is killed, within the supervisor's grace
	hostLock    = 20 * time.Second        // for an earlier host of the same worker to have cleared away
	wordsKept   = 64                      // that the supervisor has not taken
)

// A hostOrder is a worker's order on another node than the supervisor's.
type hostOrder struct {
	workerOrder
	Dir       string            `json:"dir"`    // of the job; every node is to see it
	Linked    bool              `json:"linked"` // the supervisor can ask corrald to call back
	HungAfter time.Duration     `json:"hung_after_ns"`
	Env       map[string]string `json:"env"` // of the first node, as far as tasks and daemons have it
}

// A host is what runs on another node of a job than the first one: it checks the node, keeps one worker process there, and
// ends what that leaves behind. Its supervisor is at the other end of in and out. When it returns, no process that
// descends from it is left, whatever became of the supervisor.
type host struct {
	lg     *slog.Logger
	order  hostOrder
	out    chan word
	asks   chan ask // closed when the supervisor is gone
	child  *child   // nil: not started yet, or never
	heard  chan said
	done   chan struct{}
	called *callBacks

	quiet   time.Duration // since the last ask, as far as we were awake ourselves
	stepped time.Time
	killAt  time.Time // zero: we stay
	why     word      // of our own to leave
}

// Host is the program on another node. It returns once nothing is left on it; the end of ctx says that the site takes
// the node back.
func Host(ctx context.Context, lg *slog.Logger, in io.Reader, out io.Writer) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // of a supervisor that is gone; there is still something to do
	defer signal.Stop(ignored)
	h := &host{lg: lg, out: make(chan word, wordsKept), asks: make(chan ask), heard: make(chan said), done: make(chan struct{})}
	h.called = &callBacks{say: h.say, answers: make(chan calledBack, 1)}
	defer close(h.done)
	go h.hear(in)
	written := make(chan struct{})
	go h.write(out, written)
	last := h.serve(ctx)
	h.conclude(last, written)
	if last.Error != "" {
		return errors.New(last.Error)
	}
	return nil
}

// conclude has the last word written, unless nobody takes it any more. Later ones, of a check that was cut short, are in vain.
func (h *host) conclude(last word, written <-chan struct{}) {
	patience := time.NewTimer(reportTime)
	defer patience.Stop()
	select {
	case h.out <- last:
	case <-patience.C:
		return
	}
	select {
	case <-written:
	case <-patience.C:
	}
}

// serve returns the host's last word.
func (h *host) serve(ctx context.Context) word {
	h.say(word{Hello: &hello{Now: time.Now(), Host: hostName(), PID: os.Getpid()}})
	if !h.takeOrder(ctx) {
		return word{Left: string(pool.LeaveAsked)}
	}
	for name, value := range h.order.Env {
		_ = os.Setenv(name, value) // its only error is a name that no environment has
	}
	if err := adoptOrphans(); err != nil {
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
		if err := disk.RemoveAll(h.order.Scratch); err != nil {
			h.lg.Warn("the scratch directory was left", "error", err)
		}
	}()
	last := h.watch(ctx, checked, lock)
	h.sweep()
	return last
}

// takeOrder waits for the order; not ok: there will be none.
func (h *host) takeOrder(ctx context.Context) (ok bool) {
	patience := time.NewTimer(hostSilence)
	defer patience.Stop()
	for {
		select {
		case a, more := <-h.asks:
			if a.Host != nil {
				h.order = *a.Host
				return true
			}
			if !more || a.Leave {
				return false
			}
		case <-patience.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// watch returns when the worker is gone, or was never to be.
func (h *host) watch(ctx context.Context, checked <-chan error, lock *os.File) word {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	stop, asks := ctx.Done(), h.asks
	h.stepped = time.Now()
	for h.child == nil || !h.child.gone() {
		select {
		case <-children:
		case <-ticker.C:
		case err := <-checked:
			if err == nil && h.killAt.IsZero() {
				err = h.start(lock)
			}
			if err != nil {
				return h.unfit(err)
			}
		case s := <-h.heard:
			h.pass(s)
		case a, ok := <-asks:
			if !ok {
				asks = nil
			}
			h.obey(a, ok)
		case <-stop:
			stop = nil
			h.leave(word{Left: leftTerminated})
		}
		h.step(time.Now())
		if h.child == nil && !h.killAt.IsZero() {
			return h.why
		}
	}
	last := h.lastWord()
	if ctx.Err() != nil {
		last.Left = leftTerminated
	}
	return last
}

// start starts the worker, which holds the lock, too.
func (h *host) start(lock *os.File) (err error) {
	if h.child, err = startChild(h.order.workerOrder, lock); err != nil {
		return err
	}
	go h.child.listen(h.heard, h.done)
	return nil
}

// step does whatever is due.
func (h *host) step(now time.Time) {
	passed := min(now.Sub(h.stepped), wordGap)
	h.stepped = now
	for pid, status := range reap() {
		if h.child != nil && h.child.pid == pid {
			h.child.ended, h.child.status = true, status
		}
	}
	if h.quiet += passed; h.quiet > hostSilence {
		h.leave(word{Error: fmt.Sprintf("its supervisor said nothing for %s", hostSilence)})
	}
	if h.child == nil || h.child.ended {
		return
	}
	if h.child.spoken && h.child.hangs(passed, h.order.HungAfter) {
		h.say(word{Note: fmt.Sprintf("said nothing for %s and is killed", h.order.HungAfter)})
		h.child.kill()
	}
	if !h.killAt.IsZero() && now.After(h.killAt) {
		h.child.kill()
	}
}

// obey does what the supervisor asks; not ok: it is gone.
func (h *host) obey(a ask, ok bool) {
	h.quiet = 0
	switch {
	case !ok, a.Leave:
		h.leave(word{Left: string(pool.LeaveAsked)})
	case a.CalledBack != nil:
		h.called.answer(*a.CalledBack)
	case a.Drain && h.child != nil:
		h.child.tell(a)
	case a.Drain: // nothing runs yet
		h.leave(word{Left: string(pool.LeaveDrained)})
	}
}

// leave ends the worker soon.
func (h *host) leave(why word) {
	if !h.killAt.IsZero() {
		return
	}
	h.killAt, h.why = time.Now().Add(hostGrace), why
	if h.child != nil {
		h.child.tell(ask{Leave: true})
	}
}

// pass passes on what the worker said, but for its last word: that is said when nothing is left.
func (h *host) pass(s said) {
	c := h.child
	if s.word == nil {
		c.silent = true
		return
	}
	c.spoken, c.quiet = true, 0
	if s.word.Left != "" || s.word.Error != "" {
		c.last = *s.word
		return
	}
	h.say(*s.word)
}

// lastWord is the worker's, or tells how it died.
func (h *host) lastWord() word {
	if h.child.last.Left == "" {
		return word{Error: h.child.obituary()}
	}
	return h.child.last
}

// unfit is the last word of a host whose node cannot have a worker.
func (h *host) unfit(err error) word { return word{Left: leftUnable, Error: err.Error()} }

// sweep ends what is left of our descendants.
func (h *host) sweep() {
	if h.child != nil {
		h.child.kill()
		h.child.conn.Close()
	}
	deadline := time.Now().Add(sweepTime)
	ticker := time.NewTicker(tick / 10)
	defer ticker.Stop()
	for !killStrays(nil) && time.Now().Before(deadline) {
		<-ticker.C
		reap()
	}
}

// say has a word written. One for which there is no room is dropped: the supervisor has long taken none.
func (h *host) say(w word) {
	select {
	case h.out <- w:
	default:
	}
}

// write writes words up to the last one.
func (h *host) write(out io.Writer, written chan<- struct{}) {
	defer close(written)
	_, err := io.WriteString(out, "\n"+hostMark+"\n")
	enc := json.NewEncoder(out)
	for w := range h.out {
		if err == nil {
			err = enc.Encode(w)
		}
		if w.Left != "" || w.Error != "" {
			return
		}
	}
}

// hear receives what the supervisor asks until it is gone.
func (h *host) hear(in io.Reader) {
	defer close(h.asks)
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var a ask
		if dec.Decode(&a) != nil {
			return
		}
		select {
		case h.asks <- a:
		case <-h.done:
			return
		}
	}
}

// lockWorker waits until no earlier host of the same worker, nor its worker, is on this machine: what one that lost its supervisor
// still clears away must not meet the same tasks being done again. The lock is a name in the kernel: it leaves
// nothing behind, and whoever holds it gives it back by dying.
func lockWorker(ctx context.Context, holder, id string) (*os.File, error) {
	name := "@corral-" + holder + "-" + filepath.Base(id)
	again := time.NewTicker(tick)
	defer again.Stop()
	for by := time.Now().Add(hostLock); ; {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err == nil {
			defer l.Close()
			return l.File()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(by) {
			return nil, fmt.Errorf("an earlier process of worker %s is not gone: %w", id, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// carried are the variables that a host takes over from the first node: what tasks get, and how a site limits ports.
func carried() map[string]string {
	env := map[string]string{}
	for _, name := range strings.Fields("PATH LANG CORRAL_JOB_TAG CORRAL_JOB_DIR " + portsVariable) {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}
