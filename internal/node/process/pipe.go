package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// mark is the line after which words begin: on another node, login shells and prologues print what they like before it.
const mark = "corral pilot host"

const (
	pipeWords  = 64                     // that wait for the supervisor to take them
	reportTime = 500 * time.Millisecond // for the last one to be taken
)

// A Pipe is the conversation with the supervisor, from below: a worker has it over its socket pair, a host over the
// stdin and stdout that srun or ssh carry. Whatever becomes of the supervisor, no method of a Pipe waits long for it: a
// worker that waited would not keep its lease.
type Pipe struct {
	Asks chan Ask // closed when the supervisor is gone

	words   chan Word
	written chan struct{} // closed when the last word has been written
	done    chan struct{} // closed when nothing receives from Asks any longer
}

// NewPipe begins to listen at in and to write to out. The caller ends it with Conclude.
func NewPipe(in io.Reader, out io.Writer) *Pipe {
	p := &Pipe{
		Asks: make(chan Ask), words: make(chan Word, pipeWords),
		written: make(chan struct{}), done: make(chan struct{}),
	}
	go p.hear(in)
	go p.write(out)
	return p
}

// Say has a word written. It is dropped if there is no room: the supervisor has not taken any for long. Several
// goroutines may use Say at once.
func (p *Pipe) Say(w Word) {
	select {
	case p.words <- w:
	default:
	}
}

// Conclude has the last word written, unless the supervisor takes nothing any more. Words that are said later are lost.
func (p *Pipe) Conclude(last Word) {
	close(p.done)
	patience := time.After(reportTime)
	select {
	case p.words <- last:
	case <-patience:
		return
	}
	select {
	case <-p.written:
	case <-patience:
	}
}

// write writes words up to the last one.
func (p *Pipe) write(out io.Writer) {
	defer close(p.written)
	_, err := io.WriteString(out, "\n"+mark+"\n")
	enc := json.NewEncoder(out)
	for w := range p.words {
		if err == nil {
			err = enc.Encode(w)
		}
		if w.Last() {
			return
		}
	}
}

// hear receives what the supervisor asks until it is gone.
func (p *Pipe) hear(in io.Reader) {
	defer close(p.Asks)
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var a Ask
		if dec.Decode(&a) != nil {
			return
		}
		select {
		case p.Asks <- a:
		case <-p.done:
			return
		}
	}
}

// Work is the worker process: it takes the order from the process that started it, has serve serve, and says its last
// word. serve's ctx ends when the worker must leave at once, because the supervisor asked for it or is gone, or because
// ctx ended; drain is closed when it is to finish what runs. Meanwhile Work shows the supervisor that the process runs.
func Work(ctx context.Context, serve func(context.Context, Order, <-chan struct{}, *Pipe) Word) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // from a log that ends before this process, together with srun or ssh
	defer signal.Stop(ignored)
	conn, err := supervisorConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	p := NewPipe(conn, conn)
	first := <-p.Asks
	if first.Order == nil {
		return errors.New("the supervisor gave the worker no order")
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	drain := make(chan struct{})
	go p.obey(drain, cancel)
	go p.beat(serving)
	last := serve(serving, *first.Order, drain, p)
	if ctx.Err() != nil {
		last.Left = attempt.LeftTerminated
	}
	p.Conclude(last)
	if last.Error != "" {
		return errors.New(last.Error)
	}
	return nil
}

// supervisorConn takes over the end of the socket pair that the supervisor passed, so that no task inherits it.
func supervisorConn() (net.Conn, error) {
	syscall.CloseOnExec(supervisorFD)
	syscall.CloseOnExec(lockFD)
	file := os.NewFile(supervisorFD, "supervisor")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("only pilot run starts workers: %w", err)
	}
	return conn, nil
}

// obey does what the supervisor asks until it asks the worker to leave, or is gone.
func (p *Pipe) obey(drain chan<- struct{}, leave context.CancelFunc) {
	defer leave()
	for a := range p.Asks {
		if a.Leave {
			return
		}
		if a.Drain && drain != nil {
			close(drain)
			drain = nil
		}
	}
}

// beat shows that the process runs, until ctx ends.
func (p *Pipe) beat(ctx context.Context) {
	for more := true; more; more = retry.For(ctx, WordGap) {
		p.Say(Word{})
	}
}
