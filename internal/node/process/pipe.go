package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// mark is the line after which words begin: on another node, login shells and prologues may print text before it.
const mark = "corral pilot host"

const (
	pipeWords  = 64                     // maximum number that may wait for the supervisor
	reportTime = 500 * time.Millisecond // for the supervisor to accept the last word
)

// A Pipe is the lower end of the connection to the supervisor: for a worker it is a socket pair, for a host the stdin
// and stdout that srun or ssh carry. No method of a Pipe waits long for the supervisor, whatever the supervisor's
// state: a worker that waited would lose its lease.
type Pipe struct {
	Asks chan Ask // closed when the supervisor has ended

	words   chan Word
	written chan struct{} // closed when the last word has been written
	done    chan struct{} // closed when nothing receives from Asks any more
}

// NewPipe starts reading from in and writing to out. The caller ends the Pipe with Conclude.
func NewPipe(in io.Reader, out io.Writer) *Pipe {
	p := &Pipe{
		Asks: make(chan Ask), words: make(chan Word, pipeWords),
		written: make(chan struct{}), done: make(chan struct{}),
	}
	go p.hear(in)
	go p.write(out)
	return p
}

// Say queues a word. The word is dropped if the queue is full: in that case the supervisor has not read any words for a
// long time. Several goroutines may call Say concurrently.
func (p *Pipe) Say(w Word) {
	select {
	case p.words <- w:
	default:
	}
}

// Conclude sends the last word, unless the supervisor no longer reads. Later words are lost.
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

// write writes words up to and including the last one.
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

// hear receives messages from the supervisor until it has ended.
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

// Work is the worker process: it receives the order from the process that started it, calls serve, and sends the result
// as its last word. serve's ctx ends when the worker must leave at once, because the supervisor requested it or has
// ended, or because ctx ended; drain is closed when the worker should finish its running jobs. In the meantime Work
// regularly shows the supervisor that the process is running.
func Work(ctx context.Context, serve func(context.Context, Order, <-chan struct{}, *Pipe) Word) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // from a log that srun or ssh has closed
	defer signal.Stop(ignored)
	conn, err := supervisorConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	p := NewPipe(conn, conn)
	first := <-p.Asks
	if first.Order == nil {
		return errors.New("the supervisor did not send the worker an order")
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

// supervisorConn opens the end of the socket pair that the supervisor passed to this process, in such a way that tasks
// do not inherit it.
func supervisorConn() (net.Conn, error) {
	syscall.CloseOnExec(supervisorFD)
	syscall.CloseOnExec(lockFD)
	file := os.NewFile(supervisorFD, "supervisor")
	defer file.Close()
	conn, err := net.FileConn(file)
	return conn, wrap.Errorf(err, "only pilot run starts workers")
}

// obey handles the supervisor's messages until one asks the worker to leave, or the supervisor has ended.
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

// beat regularly shows that the process is running, until ctx ends.
func (p *Pipe) beat(ctx context.Context) {
	for more := true; more; more = retry.For(ctx, WordGap) {
		p.Say(Word{})
	}
}
