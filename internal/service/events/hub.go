package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// room is how many batches wait for a client before it is dropped.
	room = 16

	// between is the least time from one batch to the next: what changes meanwhile is told together.
	between = 100 * time.Millisecond

	// maxClients bounds how many connections, with a goroutine each, listeners hold.
	maxClients = 1000

	// retryAfter is how long a database is left alone that could not be read.
	retryAfter = time.Second
)

// An event is one that a client may see if it may see what is its owner's.
type event struct {
	api.Event
	owner string
	of    int64 // the object's id
}

// A Hub hands changes to clients. Its methods may be called from any goroutine.
type Hub struct {
	lg *slog.Logger
	db *store.DB

	mu      sync.Mutex // guards what follows
	clients map[*client]bool
	stop    context.CancelFunc // of the goroutine; nil: it does not run
	done    chan struct{}      // closed when it has ended
}

// NewHub returns a hub that reads db, which must outlive it.
func NewHub(lg *slog.Logger, db *store.DB) *Hub {
	return &Hub{lg: lg, db: db, clients: map[*client]bool{}}
}

// A client is a listener.
type client struct {
	batches chan []event // closed when the client is dropped
}

// join adds a client and starts the goroutine for the first one. What is committed after join is in a batch. It is an
// Unavailable error if there are too many.
func (h *Hub) join(ctx context.Context) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) >= maxClients {
		return nil, corral.Errorf(corral.Unavailable, "%d clients listen already; try again later", maxClients)
	}
	if h.stop == nil {
		if err := h.start(ctx); err != nil {
			return nil, err
		}
	}
	c := &client{batches: make(chan []event, room)}
	h.clients[c] = true
	return c, nil
}

// start starts the goroutine. It begins with what the history has now, and watches from before that.
func (h *Hub) start(ctx context.Context) error {
	watch := h.db.Watch()
	_, last, err := span(ctx, h.db)
	if err != nil {
		watch.Close()
		return err
	}
	r := &reader{db: h.db, last: last, said: map[store.Subject]uint64{}}
	// It reads for corrald, which sees everything, and not for the first client, whose context has a caller.
	life, stop := context.WithCancel(context.Background())
	h.stop, h.done = stop, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		defer watch.Close()
		h.run(life, watch, r)
	}(h.done)
	return nil
}

// leave removes a client, and with the last one waits until the goroutine has ended.
func (h *Hub) leave(c *client) {
	h.mu.Lock()
	delete(h.clients, c)
	var done chan struct{}
	if len(h.clients) == 0 && h.stop != nil {
		h.stop()
		h.stop, done = nil, h.done
	}
	h.mu.Unlock()
	if done != nil {
		<-done
	}
}

// run reads and publishes until ctx ends.
func (h *Hub) run(ctx context.Context, watch *store.Watch, r *reader) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.Filled:
		}
		for changed := watch.Take(); ; {
			batch, more, err := r.read(ctx, changed)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				h.lg.Error("reading what changed", "error", err)
				retry.For(ctx, retryAfter)
				continue // with the same changes
			}
			h.publish(batch)
			changed = nil
			if !more {
				break
			}
		}
		retry.For(ctx, between)
	}
}

// publish hands a batch to every client that has room for it, and drops the others.
func (h *Hub) publish(batch []event) {
	if len(batch) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, there := range h.clients {
		if !there {
			continue
		}
		select {
		case c.batches <- batch:
		default:
			close(c.batches)
			h.clients[c] = false
		}
	}
}
