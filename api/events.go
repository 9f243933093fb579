package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// EventsMediaType is that of server-sent events (WHATWG HTML, section 9.2).
const EventsMediaType = "text/event-stream"

// LastEventHeader says which event a client had last, as browsers send it when they connect again.
const LastEventHeader = "Last-Event-ID"

// The kinds of events that are no object's.
const (
	// EventReady is the first event for a client that had none before: what changes after it is told. Lists that are
	// read after it and changed by the events that follow are never out of date.
	EventReady = "ready"

	// EventReset says that what changed since the client's last event is not known one by one, or is too much: it
	// reads the lists again and goes on from this event.
	EventReset = "reset"
)

// An Event is a change of an object, whose kind it is called after: site, glidein or run. Data is the object as it is
// now, so that of many changes in a row the last one alone may be told. Data of EventReady and EventReset is {}.
type Event struct {
	ID   int64           `json:"id,omitempty"` // to come back with; 0: there is more of the same change
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Write writes the event as server-sent events are written. Data has no line break in it.
func (e Event) Write(w io.Writer) error {
	if e.ID != 0 {
		if _, err := fmt.Fprintf(w, "id: %d\n", e.ID); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, e.Data)
	return err
}

// maxEvent is how long a line of a stream of events may be: the report of a run is the largest part of an object.
const maxEvent = 16 << 20

// ReadEvents calls do for each event of a stream, until the stream ends or do returns an error, which it returns. A
// stream that ends in an event, or that is none, is an Unavailable error.
func ReadEvents(r io.Reader, do func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	var e Event
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		var err error
		switch string(name) {
		case "id":
			e.ID, err = strconv.ParseInt(string(value), 10, 64)
		case "event":
			e.Kind = string(value)
		case "data":
			e.Data = bytes.Clone(value)
		case "": // the end of an event, or a comment that keeps the connection alive
			if len(lines.Bytes()) == 0 && e.Kind != "" {
				if !json.Valid(e.Data) {
					return corral.Errorf(corral.Unavailable, "an event called %.80q has no JSON", e.Kind)
				}
				if err := do(e); err != nil {
					return err
				}
				e = Event{}
			}
		}
		if err != nil {
			return corral.Errorf(corral.Unavailable, "an event's id is %.80q: want a number", value)
		}
	}
	if err := lines.Err(); err != nil {
		return corral.Errorf(corral.Unavailable, "reading events: %w", err)
	}
	if e.Kind != "" {
		return corral.Errorf(corral.Unavailable, "the stream of events ends in one")
	}
	return nil
}

// Events calls do for each event that follows the one with this id, 0 for none, until ctx ends, do returns an error,
// which it returns, or corrald ends the stream: then the error is nil, and the caller goes on with the id of the last
// event.
func (c *Client) Events(ctx context.Context, after int64, do func(Event) error) error {
	query := url.Values{}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	what := call{method: http.MethodGet, path: "/v1/events", query: query}
	ctx, sent := retry.Track(ctx)
	req, err := c.request(ctx, what)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", EventsMediaType)
	resp, err := c.http.Do(req)
	if err != nil {
		return c.lost(ctx, what, sent, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
		return errors.Join(c.problem(what, resp, body), err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), EventsMediaType) {
		return c.strange(what, "answered %s with something that is no stream of events", what.path)
	}
	err = ReadEvents(resp.Body, do)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
