package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/pool"
)

// leftTerminated is the last word of a worker that the site, not its supervisor, told to go: a batch
// system may signal every process of a job.
const leftTerminated = "terminated"

// Worker is the worker process: it takes its order from the supervisor that started it, serves the
// personal cluster of either kind, and says how that went. It leaves at once when ctx ends or the supervisor is gone.
func Worker(ctx context.Context, lg *slog.Logger) error {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // of a log that is gone before us, with srun or ssh
	defer signal.Stop(ignored)
	conn, err := supervisorConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	dec := json.NewDecoder(conn)
	var first ask
	if err := dec.Decode(&first); err != nil || first.Order == nil {
		return fmt.Errorf("take the worker's order: %w", errors.Join(err, errors.New("no order")))
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	drain := make(chan struct{})
	go obey(dec, drain, cancel)

	out := &speaker{conn: conn}
	go out.beat(serving)
	serve := first.Order.servePool
	if first.Order.Condor != nil {
		serve = first.Order.serveCondor
		if len(first.Order.Condor.Through) > 0 {
			serve = first.Order.serveRelayed
		}
	}
	last := serve(serving, lg, drain, out)
	if ctx.Err() != nil {
		last.Left = leftTerminated
	}
	err = out.say(last)
	if last.Error != "" {
		err = errors.Join(errors.New(last.Error), err)
	}
	return err
}

// servePool serves corrald's own dispatcher, and returns the worker's last word.
func (o workerOrder) servePool(ctx context.Context, lg *slog.Logger, drain <-chan struct{}, out *speaker) word {
	reason, err := pool.RunWorker(ctx, lg, o.config(drain, out))
	last := word{Left: string(reason)}
	if err != nil {
		last.Error = err.Error()
	}
	return last
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
		return nil, fmt.Errorf("a worker is started by pilot run only: %w", err)
	}
	return conn, nil
}

// obey does what the supervisor asks until it asks to leave or is gone.
func obey(dec *json.Decoder, drain chan<- struct{}, leave context.CancelFunc) {
	defer leave()
	drained := false
	for {
		var a ask
		if dec.Decode(&a) != nil || a.Leave {
			return
		}
		if a.Drain && !drained {
			close(drain)
			drained = true
		}
	}
}

const (
	wordGap = time.Second            // between two words of a worker
	sayTime = 200 * time.Millisecond // for the supervisor to take one: a worker that waits keeps no lease
)

// A speaker sends words to the supervisor. It may be used by several goroutines at once.
type speaker struct {
	mu   sync.Mutex // guards the use of conn for writing
	conn net.Conn
}

// say sends a word. One that a stopped supervisor leaves no room for is dropped; half a word would
// spoil those that follow, so it is the last.
func (s *speaker) say(w word) error {
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
func (s *speaker) beat(ctx context.Context) {
	tick := time.NewTicker(wordGap)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = s.say(word{}) // if the supervisor is gone, obey notices
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (o workerOrder) config(drain <-chan struct{}, out *speaker) pool.WorkerConfig {
	return pool.WorkerConfig{
		ID: o.ID, Instance: newHolder().ID, Host: o.Host, Holder: o.Holder, Tag: o.Tag, Token: o.Token,
		Addresses: o.Addresses, CertDigest: o.CertDigest, CPUs: o.CPUs, MemoryMiB: o.MemoryMiB,
		EndsIn: o.EndsIn, Scratch: o.Scratch, Drain: drain,
		// If the supervisor cannot be told, obey notices that it is gone.
		Registered: func() { _ = out.say(word{Registered: true}) },
		Idle:       func(idle time.Duration) { _ = out.say(word{Idle: &idle}) },
	}
}
