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

// An execution is one command on one channel of the connection. stdout and stderr begin at mark. Its own context ends
// early for one of four reasons: the caller's context ends, the login shell does not reach the command, stdin fails, or
// the output is too long. fail records the reason.
type execution struct {
	*channel
	stdout, stderr *marked
	fail           context.CancelCauseFunc // ends the execution's context
}

// startExecution returns an execution with its context.
func startExecution(ctx context.Context, c *channel, mark string) (context.Context, *execution) {
	ctx, fail := context.WithCancelCause(ctx)
	return ctx, &execution{
		channel: c, stdout: newMarked(mark, fail), stderr: newMarked(mark, fail), fail: fail,
	}
}

// perform returns the command's result once the command or the channel has ended. The server sends the exit status as a
// request, separately from the output. If there is no status, the connection was lost, and the command's outcome is
// unknown. If there is a status but no mark, the login shell itself ended, so nothing was done.
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

// linger waits until all output has arrived. The exit status may arrive before the last output. A background process
// may hold the output open indefinitely, so linger returns when nothing has arrived for gridsite.Linger.
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

// hasBegun reports whether the command has begun. One mark suffices, because a profile may have redirected the other
// stream.
func (e *execution) hasBegun() bool { return e.stdout.hasBegun() || e.stderr.hasBegun() }

// printed returns the number of bytes of the command's output that have arrived.
func (e *execution) printed() int { return e.stdout.len() + e.stderr.len() }

var errLost = corral.Errorf(corral.Unknown, "the connection was lost before the command ended")

// noShell returns the error for a login shell that did not reach the command.
func noShell(patience time.Duration) error {
	return corral.Errorf(corral.Unknown,
		"the login shell did not begin it within %v: something in its profile (~/.profile, ~/.bashrc) waits,"+
			" or the home directory does not answer", patience)
}

// end kills a command that has begun. If it does not begin within patience, it is abandoned.
func (e *execution) end(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if pid := e.stderr.pid(ctx); pid != "" {
		e.kill(ctx, pid)
	}
}

// send copies stdin to the command. A command that ends early stops reading, which is not an error. If the source
// fails, the end of the input is not sent, because the command would treat a partial file as complete; instead, the
// command is killed.
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

// source is a reader that records why reading failed.
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

// exitOf waits for the server's report of the command's end; ended is false if the channel closes without a report.
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

// signals are the signals named in the protocol, without SIG. OpenSSH reports other signals without a number.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12,
	"PIPE": 13, "ALRM": 14, "TERM": 15,
}

// marked keeps a command's output after the line that begins with mark, and ends the command when the output exceeds
// MaxOutput. Until that line arrives, data holds the login shell's output, which is then discarded.
type marked struct {
	line     *regexp.Regexp
	overflow context.CancelCauseFunc
	began    chan struct{} // closed when the line has arrived

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

// content returns the output so far.
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

// pid waits for the process id on the line of the mark; it returns "" if ctx ends first.
func (m *marked) pid(ctx context.Context) string {
	select {
	case <-m.began:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rest
}
