package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/pilot/attempt"
)

// sayTime is for the supervisor to take a word: a worker that waits for it keeps no lease.
const sayTime = 200 * time.Millisecond

// Work is the worker process: it takes the order from the process that started it, has serve serve, and says its last
// word. serve's ctx ends when the worker must leave at once, because the supervisor asked for it or is gone, or because
// ctx ended; drain is closed when it is to finish what runs. Meanwhile Work shows the supervisor that the process runs.
func Work(ctx context.Context, serve func(context.Context, Order, <-chan struct{}, *Speaker) Word) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // from a log that ends before this process, together with srun or ssh
	defer signal.Stop(ignored)
	conn, err := supervisorConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	dec := json.NewDecoder(conn)
	var first Ask
	if err := dec.Decode(&first); err != nil || first.Order == nil {
		return fmt.Errorf("take the worker's order: %w", errors.Join(err, errors.New("no order")))
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	drain := make(chan struct{})
	go obey(dec, drain, cancel)

	out := &Speaker{conn: conn}
	go out.beat(serving)
	last := serve(serving, *first.Order, drain, out)
	if ctx.Err() != nil {
		last.Left = attempt.LeftTerminated
	}
	err = out.Say(last)
	if last.Error != "" {
		err = errors.Join(errors.New(last.Error), err)
	}
	return err
}

// supervisorConn takes over the end of the socket pair that the supervisor passed, so that no task
// inherits it.
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
func obey(dec *json.Decoder, drain chan<- struct{}, leave context.CancelFunc) {
	defer leave()
	drained := false
	for {
		var a Ask
		if dec.Decode(&a) != nil || a.Leave {
			return
		}
		if a.Drain && !drained {
			close(drain)
			drained = true
		}
	}
}

// A Speaker sends a worker's words to its supervisor. Several goroutines may use it at once.
type Speaker struct {
	mu   sync.Mutex // guards the use of conn for writing
	conn net.Conn
}

// Say sends a word. If a stopped supervisor leaves no room for it the word is dropped. Half a word would spoil those
// that follow, so nothing follows it.
func (s *Speaker) Say(w Word) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err // unreachable: a word has no value that JSON lacks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(sayTime))
	n, err := s.conn.Write(append(b, '\n'))
	if err != nil && n > 0 {
		_ = s.conn.Close()
	}
	return err
}

// beat shows that the process runs, until ctx ends.
func (s *Speaker) beat(ctx context.Context) {
	tick := time.NewTicker(WordGap)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = s.Say(Word{}) // if the supervisor is gone, obey notices
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
