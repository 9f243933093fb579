package events

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// mostMissed is the maximum number of missed history entries that are sent to a client individually.
	mostMissed = 5000

	// alive is the interval at which a client gets at least one message, so that both sides notice a lost connection.
	alive = 15 * time.Second

	// patience is how long a client may take to receive data beyond the kernel's buffers.
	patience = 10 * time.Second
)

// Routes returns the hub's routes.
func (h *Hub) Routes(a *rest.Adapter) []rest.Route {
	return []rest.Route{rest.Get("/v1/events", func(c *rest.Call) error { return h.listen(a, c) }, "after")}
}

// listen answers with events until the client disconnects or is too slow, or corrald stops. Changes between joining and
// reading the missed events are sent twice rather than not at all.
func (h *Hub) listen(a *rest.Adapter, c *rest.Call) error {
	after, err := lastEvent(c)
	if err != nil {
		return err
	}
	if a.Life.Err() != nil {
		return rest.ErrStopping
	}
	me, err := h.join(c.Context())
	if err != nil {
		return err
	}
	defer h.leave(me)
	first, err := missed(c.Context(), h.db, after)
	if err != nil {
		return err
	}
	out := c.Live(api.EventsMediaType, patience)
	if err := send(out, visible(c.Caller(), first)); err != nil {
		return nil // the client is disconnected or too slow
	}
	tick := time.NewTicker(alive)
	defer tick.Stop()
	for err == nil {
		select {
		case batch, there := <-me.batches:
			if !there {
				return nil // the client was dropped and will reconnect
			}
			err = send(out, visible(c.Caller(), batch))
		case <-tick.C:
			if err = h.stillIn(c); err == nil {
				err = out([]byte(":\n\n"))
			}
		case <-a.Life.Done():
			return nil
		case <-c.Context().Done():
			return nil
		}
	}
	return nil
}

// stillIn returns an error if the client's token has been revoked or has expired since it was admitted, or its
// account was suspended.
func (h *Hub) stillIn(c *rest.Call) error {
	id := c.Caller().Token
	if id == 0 { // a client of corrald's own socket
		return nil
	}
	var refusal string
	t, err := store.Read(c.Context(), h.db.Request(c.Context()), func(tx *store.Tx) (t corral.Token, err error) {
		if t, err = tx.Token(id); err == nil {
			refusal, err = tx.Refusal(t.Owner)
		}
		return t, err
	})
	if err == nil {
		_, err = access.Of(t, time.Now())
	}
	if err == nil && refusal != "" {
		err = corral.Errorf(corral.Forbidden, "%s", refusal)
	}
	return err
}

// send writes a batch at once. Only its last event has an id: a client whose connection broke within the batch
// reconnects with an earlier id and gets the whole batch again.
func send(out func([]byte) error, batch []event) error {
	var text bytes.Buffer
	for i, e := range batch {
		if i < len(batch)-1 {
			e.ID = 0
		}
		_ = e.Write(&text) // a buffer accepts all writes
	}
	if text.Len() == 0 {
		return nil
	}
	return out(text.Bytes())
}

// lastEvent returns the id of the client's last event, or 0 if there is none. When browsers reconnect by themselves,
// they send the header with the original query, so the header takes precedence.
func lastEvent(c *rest.Call) (int64, error) {
	after := c.Query.Number("after")
	if err := c.Query.Err(); err != nil {
		return 0, err
	}
	text := c.Header(api.LastEventHeader)
	if text == "" {
		return after, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, corral.ErrorAt(corral.Invalid, api.LastEventHeader, "%.80q is not the id of an event", text)
	}
	return after, nil
}

// missed returns the first events for a client whose last event has this id: the changes since then, or an event after
// which the client must start over. Task counts have no history entries, so unfinished runs are always included.
func missed(ctx context.Context, db *store.DB, after int64) (batch []event, err error) {
	err = db.Whole().View(ctx, func(tx *store.WholeTx) error {
		first, last, err := tx.HistorySpan()
		switch {
		case err != nil:
			return err
		case after == 0:
			batch = []event{anew(api.EventReady, last)}
			return nil
		case after > last, after+1 < first, last-after > mostMissed: // the event is from another database, or too old
			batch = []event{anew(api.EventReset, last)}
			return nil
		}
		entries, err := tx.HistoryAfter(after, 0)
		if err != nil {
			return err
		}
		runs, err := tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning, corral.RunCancelling}})
		if err != nil {
			return err
		}
		var live []store.Subject
		for _, r := range runs {
			live = append(live, store.Subject{Object: corral.ObjectRun, ID: int64(r.ID)})
		}
		objects, err := objectsOf(tx, entries, live)
		if err == nil {
			batch, err = load(tx, objects, last)
		}
		return err
	})
	return batch, err
}

// anew returns an event without an object.
func anew(kind string, id int64) event {
	return event{Event: api.Event{ID: id, Kind: kind, Data: []byte("{}")}}
}
