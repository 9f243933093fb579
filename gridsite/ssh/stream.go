package ssh

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// maxGreeting is the maximum output of a login shell before the command begins, in bytes.
const maxGreeting = 1 << 20

// stream is a command with a session of its own. It does not count among the concurrent commands, because it lasts for
// hours. Unlike Run, a stream passes the command's output on as it arrives; therefore the greeting of the login shell
// is skipped first, separately on each of the two output streams.
type stream struct {
	*channel
	timing *timing
	out    *bufio.Reader // begins with the command's own output
	pid    chan string   // the command's process id, once it has begun
	stop   func() bool   // detaches it from its context
	once   sync.Once
	input  sync.Mutex    // held by a Write, and by the end of input: a channel of x/crypto cannot do both at once
	heard  chan struct{} // closed once stderr has ended
	ended  chan struct{} // closed once err is set
	err    error
}

// lastWords is the time for which the command's stderr is still read after the exit status, because background
// processes may hold stderr open indefinitely. It is also the time for which a command may run after the end of its
// input.
const lastWords = 2 * time.Second

// Stream starts the command over the site's connection, through the user's login shell like Run.
func (c *Conn) Stream(ctx context.Context, cmd gridsite.Command) (gridsite.Stream, error) {
	mark := rand.Text()
	line, err := remoteLine(mark, cmd.Argv)
	if err != nil {
		return nil, err
	}
	ch, err := c.sessions.open(ctx)
	if err != nil {
		return nil, err
	}
	c.sessions.stay()
	st := &stream{
		channel: ch, timing: c.timing, out: bufio.NewReaderSize(ch.Channel, 64<<10), pid: make(chan string, 1),
		heard: make(chan struct{}), ended: make(chan struct{}),
	}
	said := &gridsite.Complaint{}
	began := make(chan error, 1)
	go func() { began <- st.begin(line, mark, said) }()
	select {
	case err = <-began:
	case <-time.After(c.timing.dial):
		err = noShell(c.timing.dial)
	case <-ctx.Done():
		err = corral.Errorf(corral.Unknown, "%w", context.Cause(ctx))
	}
	if err != nil {
		ch.abandon()
		return nil, fmt.Errorf("%s: starting %s: %w", c.site, cmd.Argv[0], err)
	}
	go st.await(cmd.Argv[0], said)
	st.stop = context.AfterFunc(ctx, st.finish)
	return st, nil
}

// begin sends the command and reads up to the beginning of its own output. stderr is read in the background until its
// end: its mark contains the process id for killing the command, and its last lines explain a failure.
func (st *stream) begin(line, mark string, said *gridsite.Complaint) error {
	if err := st.exec(line); err != nil {
		return err
	}
	go func() {
		defer close(st.heard)
		stderr := bufio.NewReader(st.Stderr())
		if pid, err := skipTo(stderr, mark); err == nil {
			st.pid <- strings.TrimSpace(pid)
			_, _ = io.Copy(said, stderr)
		}
	}()
	_, err := skipTo(st.out, mark)
	switch {
	case errors.Is(err, errGreeting):
		return err
	case err != nil:
		status, ended := exitOf(st.requests)
		if !ended {
			return errLost
		}
		return corral.Errorf(corral.Unavailable, "the login shell ended, with exit status %d, before the command began",
			status)
	}
	return nil
}

var errGreeting = corral.Errorf(corral.Unavailable,
	"the login shell printed more than %d bytes of output before the command", maxGreeting)

// skipTo reads lines up to the line that begins with mark, and returns the rest of that line. It gives up after
// maxGreeting bytes, in case the greeting has no end.
func skipTo(r *bufio.Reader, mark string) (rest string, err error) {
	for read := 0; read < maxGreeting; {
		line, err := r.ReadSlice('\n')
		read += len(line)
		if err != nil && err != bufio.ErrBufferFull {
			return "", err
		}
		if rest, ok := strings.CutPrefix(string(line), mark); ok {
			return rest, nil
		}
	}
	return "", errGreeting
}

// await waits for the end of the command, or of the connection.
func (st *stream) await(name string, said *gridsite.Complaint) {
	defer close(st.ended)
	status, ended := exitOf(st.requests)
	go ssh.DiscardRequests(st.requests)
	if !ended {
		st.err = errLost
		return
	}
	select {
	case <-st.heard:
	case <-time.After(lastWords):
	}
	st.err = said.Failure(name, status)
}

func (st *stream) Read(p []byte) (int, error) { return st.out.Read(p) }

func (st *stream) Write(p []byte) (int, error) {
	st.input.Lock()
	defer st.input.Unlock()
	return st.channel.Write(p)
}

// endInput ends the command's input after the Write in progress. If the command does not read, endInput waits until the
// channel is closed, when the end of input no longer matters.
func (st *stream) endInput() {
	st.input.Lock()
	defer st.input.Unlock()
	_ = st.CloseWrite()
}

func (st *stream) Wait() error {
	<-st.ended
	return st.err
}

// Close ends the command's input. A command that still continues is killed.
func (st *stream) Close() error {
	st.stop()
	go st.finish()
	return nil
}

// finish ends the command: first by ending its input, upon which Corral's programs exit, and after lastWords by a kill.
// It runs only once, whether the stream was closed or its context ended.
func (st *stream) finish() {
	st.once.Do(func() {
		go st.endInput()
		select {
		case <-st.ended:
		case <-time.After(lastWords):
			ctx, cancel := context.WithTimeout(context.Background(), st.timing.kill)
			defer cancel()
			select {
			case pid := <-st.pid:
				st.kill(ctx, pid)
			case <-ctx.Done():
			}
		}
		_ = st.channel.Close()
	})
}
