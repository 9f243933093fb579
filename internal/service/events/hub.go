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
	// room is the number of batches that wait for a client before it is dropped.
	room = 16

	// between is the minimum interval between batches: changes in the meantime are sent together.
	between = 100 * time.Millisecond

	// maxClients limits the number of listeners, each with a connection and a goroutine.
	maxClients = 1000

	// retryAfter is the pause after a failure to read the database.
	retryAfter = time.Second
)

// An event is visible to a client that may see its owner's objects.
type event struct {
	api.Event
	owner string
	of    int64 // the object's id
}

// A Hub sends changes to clients. Its methods may be called from any goroutine.
type Hub struct {
	lg *slog.Logger
	db *store.DB

	mu      sync.Mutex // guards the fields below
	clients map[*client]bool
	stop    context.CancelFunc // ends the goroutine; nil: it is not running
	done    chan struct{}      // closed when the goroutine has ended
}

// NewHub returns a hub that reads db, which must outlive it.
func NewHub(lg *slog.Logger, db *store.DB) *Hub {
	return &Hub{lg: lg, db: db, clients: map[*client]bool{}}
}

// A client is a listener.
type client struct {
	batches chan []event // closed when the client is dropped
}

// join adds a client and starts the goroutine for the first one. Changes committed after join are in a batch. If
// there are too many clients, the error is Unavailable.
func (h *Hub) join(ctx context.Context) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) >= maxClients {
		return nil, corral.Errorf(corral.Unavailable, "%d clients are already listening; try again later", maxClients)
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

// start starts the goroutine. The goroutine begins at the present end of the history; the watch starts before that end
// is read.
func (h *Hub) start(ctx context.Context) error {
	watch := h.db.Watch()
	_, last, err := span(ctx, h.db)
	if err != nil {
		watch.Close()
		return err
	}
	r := &reader{db: h.db, last: last, said: map[store.Subject]uint64{}}
	// The goroutine reads on behalf of corrald, which sees everything, and not on behalf of the first client, whose
	// context has a caller.
	life, stop := context.WithCancel(context.Background())
	h.stop, h.done = stop, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		defer watch.Close()
		h.run(life, watch, r)
	}(h.done)
	return nil
}

// leave removes a client. After the last one it waits until the goroutine has ended.
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
				continue // try again with the same changes
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

// publish passes a batch to every client that has room for it and drops the others.
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
