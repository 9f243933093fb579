package ssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// An execution is one command on one channel of the connection. stdout and stderr begin at mark. It runs under a
// context of its own, which ends early for any of four reasons: the caller's ends, the login shell does not come to the
// command, stdin breaks, or the output is too much. fail says which.
type execution struct {
	*channel
	stdout, stderr *marked
	fail           context.CancelCauseFunc // ends the context that run is under
}

// startExecution makes an execution under a context of its own.
func startExecution(ctx context.Context, c *channel, mark string) (context.Context, *execution) {
	ctx, fail := context.WithCancelCause(ctx)
	return ctx, &execution{
		channel: c, stdout: newMarked(mark, fail), stderr: newMarked(mark, fail), fail: fail,
	}
}

// perform returns the command's result once it has ended, or the channel has. The exit status comes as a request of the
// server, beside the output. Without a status the connection was lost, and what became of the command is not known;
// with one but without a mark the login shell itself ended, so nothing was done.
func (e *execution) perform(line string, stdin io.Reader) (gridsite.Result, error) {
	if err := e.exec(line); err != nil {
		return gridsite.Result{}, err
	}
	var copies sync.WaitGroup
	copies.Go(func() { e.send(stdin) })
	copies.Go(func() { _, _ = io.Copy(e.stdout, e.Channel) })
	copies.Go(func() { _, _ = io.Copy(e.stderr, e.Stderr()) })
	status, ended := exitOf(e.requests)
	go ssh.DiscardRequests(e.requests)
	e.linger(&copies)
	if !ended {
		return gridsite.Result{}, errLost
	}
	stdout, stderr := e.stdout.content(), e.stderr.content()
	if !e.hasBegun() {
		return gridsite.Result{}, corral.Errorf(corral.Unavailable,
			"the login shell ended, with exit status %d, before the command began: %s",
			status, gridsite.LastLine(append(stdout, stderr...)))
	}
	return gridsite.Result{Exit: status, Stdout: stdout, Stderr: stderr}, nil
}

// linger waits until all output is there. The exit status may arrive before what was printed, on its own path through
// the server. A process in the background may hold the output open without end, so what counts is that nothing new has
// come for gridsite.Linger.
func (e *execution) linger(copies *sync.WaitGroup) {
	copied := make(chan struct{})
	go func() { copies.Wait(); close(copied) }()
	const look = gridsite.Linger / 20
	tick := time.NewTicker(look)
	defer tick.Stop()
	before := e.printed()
	for quiet := time.Duration(0); quiet < gridsite.Linger; quiet += look {
		select {
		case <-copied:
			return
		case <-tick.C:
		}
		if now := e.printed(); now != before {
			before, quiet = now, 0
		}
	}
}

// hasBegun reports whether the command has: one mark is enough, because a profile may have sent the other stream
// elsewhere.
func (e *execution) hasBegun() bool { return e.stdout.hasBegun() || e.stderr.hasBegun() }

// printed is how much of the command's output has arrived, in bytes.
func (e *execution) printed() int { return e.stdout.len() + e.stderr.len() }

var errLost = corral.Errorf(corral.Unknown, "the connection was lost before the command ended")

// noShell says that a login shell did not come to the command.
func noShell(patience time.Duration) error {
	return corral.Errorf(corral.Unknown,
		"the login shell does not begin it within %v: something in its profile (~/.profile, ~/.bashrc) waits,"+
			" or the home directory does not answer", patience)
}

// end kills a command that has begun; one that has not, within patience, is left to itself.
func (e *execution) end(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if pid := e.stderr.pid(ctx); pid != "" {
		e.kill(ctx, pid)
	}
}

// send copies stdin to the command. A command that ends early reads no more of it, which is not an error. If the source
// breaks, its end is not sent: a file that is half there must not look to the command like one that is complete, so the
// command is killed instead.
func (e *execution) send(stdin io.Reader) {
	if stdin != nil {
		src := &source{r: stdin}
		if _, err := io.Copy(e.Channel, src); src.err != nil {
			e.fail(src.err)
			return
		} else if err != nil {
			return
		}
	}
	_ = e.CloseWrite()
}

// source remembers why reading failed.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// exitOf waits for the end that the server reports; ended is false if the channel is gone without one.
func exitOf(requests <-chan *ssh.Request) (status int, ended bool) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var m struct{ Status uint32 }
			if ssh.Unmarshal(r.Payload, &m) == nil {
				return int(m.Status), true
			}
		case "exit-signal":
			var m struct {
				Signal    string
				Core      bool
				Text, Tag string
			}
			if ssh.Unmarshal(r.Payload, &m) == nil {
				return 128 + signals[m.Signal], true
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
	return 0, false
}

// signals are those that the protocol has a name for, which is without SIG. OpenSSH tells others by no number.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12,
	"PIPE": 13, "ALRM": 14, "TERM": 15,
}

// marked keeps what a command writes after the line that begins with mark, and ends the command when that is more than
// MaxOutput. Until the line has come, data holds what the login shell says; then it is dropped, and what follows is the
// command's own.
type marked struct {
	line     *regexp.Regexp
	overflow context.CancelCauseFunc
	began    chan struct{} // closed once the line is there

	mu   sync.Mutex
	data bytes.Buffer
	rest string // of the line
}

func newMarked(mark string, overflow context.CancelCauseFunc) *marked {
	return &marked{line: regexp.MustCompile(`(?m)^` + mark + `(?: ([0-9]+))?\n`), overflow: overflow,
		began: make(chan struct{})}
}

func (m *marked) hasBegun() bool { return isClosed(m.began) }

func (m *marked) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data.Len()+len(p) > gridsite.MaxOutput {
		m.overflow(gridsite.ErrOutput)
		return 0, gridsite.ErrOutput
	}
	m.data.Write(p)
	if m.hasBegun() {
		return len(p), nil
	}
	if at := m.line.FindSubmatchIndex(m.data.Bytes()); at != nil {
		if at[2] >= 0 {
			m.rest = string(m.data.Bytes()[at[2]:at[3]])
		}
		m.data.Next(at[1])
		close(m.began)
	}
	return len(p), nil
}

// content is what was written so far.
func (m *marked) content() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.data.Bytes())
}

func (m *marked) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Len()
}

// pid waits for the process id that the line of the mark says; it is empty if ctx ends before.
func (m *marked) pid(ctx context.Context) string {
	select {
	case <-m.began:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rest
}
