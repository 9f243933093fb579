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

// EventsMediaType is the media type of server-sent events (WHATWG HTML, section 9.2).
const EventsMediaType = "text/event-stream"

// LastEventHeader names the last event that a client received. Browsers send it when they reconnect.
const LastEventHeader = "Last-Event-ID"

// The kinds of events that belong to no object.
const (
	// EventReady is the first event for a client that has not received any. Every change after this event is sent.
	// Lists that are read after it, and updated with the following events, are never out of date.
	EventReady = "ready"

	// EventReset means that the changes since the client's last event are not known individually, or are too many. The
	// client must read the lists again and continue from this event.
	EventReset = "reset"
)

// An Event is a change of an object. Kind is the object's kind: site, glidein or run. Data is the object's current
// state, so only the last of several consecutive changes may be sent. Data of EventReady and EventReset is {}.
type Event struct {
	ID   int64           `json:"id,omitempty"` // for reconnecting; 0: the change has further events
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Write writes the event in the format of server-sent events. Data must not contain line breaks.
func (e Event) Write(w io.Writer) error {
	if e.ID != 0 {
		if _, err := fmt.Fprintf(w, "id: %d\n", e.ID); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, e.Data)
	return err
}

// maxEvent is the maximum length of a line of an event stream. The largest part of an object is the report of a run.
const maxEvent = 16 << 20

// readEvents calls do for each event of a stream until the stream ends or do returns an error, which readEvents
// returns. A stream that ends within an event, or has another format, is an Unavailable error.
func readEvents(r io.Reader, do func(Event) error) error {
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
					return corral.Errorf(corral.Unavailable, "an event of kind %.80q has no JSON data", e.Kind)
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
		return corral.Errorf(corral.Unavailable, "the stream of events ends within an event")
	}
	return nil
}

// Events calls do for each event after the one with the given id (0: none) until ctx ends, do returns an error, which
// Events returns, or corrald ends the stream. In the last case the error is nil, and the caller continues with the id
// of the last event.
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
		return c.strange(what, "the answer to %s is not a stream of events", what.path)
	}
	err = readEvents(resp.Body, do)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
