package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// answerTimeout bounds the wait for the beginning of an answer: the longest wait that a request may
// ask for, and as long again for a busy machine.
const answerTimeout = 2 * MaxWait

// A Client speaks to one corrald. It may be used by several goroutines at once.
type Client struct {
	server string // as the user wrote it
	base   string // URL without a slash at its end
	token  string // empty: none
	http   *retryablehttp.Client
}

// New returns a client for server, which is unix:PATH, http://HOST[:PORT] or https://HOST[:PORT]. It
// does not connect.
func New(server string) (*Client, error) { return Dial(server, Options{}) }

// Server is the URL of the corrald that it speaks to, as New takes it.
func (c *Client) Server() string { return c.server }

// Close closes idle connections.
func (c *Client) Close() { c.http.HTTPClient.CloseIdleConnections() }

// A call is one request, however often it is sent.
type call struct {
	method string
	path   string // below the server, its parts escaped
	query  url.Values
	key    string // idempotency key; empty for a read
	body   []byte // JSON; nil for none
}

// get reads an object.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return decode[T](c.do(ctx, call{method: http.MethodGet, path: path, query: query}))
}

// change changes something, under a random key unless the call has one: so the repetitions that the client itself sends
// are safe even where the caller does not care for keys.
func change[T any](ctx context.Context, c *Client, do call) (T, error) {
	if do.key == "" {
		do.key = rand.Text()
	}
	if err := CheckKey(KeyHeader, do.key); err != nil {
		var none T
		return none, err
	}
	return decode[T](c.do(ctx, do))
}

// send makes request the body of a change.
func send[T any](ctx context.Context, c *Client, do call, request any) (T, error) {
	var err error
	if do.body, err = json.Marshal(request); err != nil {
		var none T
		return none, fmt.Errorf("encoding the request: %w", err)
	}
	return change[T](ctx, c, do)
}

// create posts a request.
func create[T any](ctx context.Context, c *Client, path, key string, request any) (T, error) {
	return send[T](ctx, c, call{method: http.MethodPost, path: path, key: key}, request)
}

// act posts to a path that is the whole request: an object, and a verb below it.
func act[T any](ctx context.Context, c *Client, path string) (T, error) {
	return change[T](ctx, c, call{method: http.MethodPost, path: path})
}

// remove asks for the removal of an object.
func remove[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return change[T](ctx, c, call{method: http.MethodDelete, path: path, query: query})
}

// list reads all pages of a list. Each page is a view of its own: what is created meanwhile may be on the last one.
// While one is decoded, the next one is made: a list of 100,000 tasks keeps both sides busy.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	all := []T{} // an empty list is [] in JSON, never null
	if query == nil {
		query = url.Values{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	page := c.begin(ctx, call{method: http.MethodGet, path: path, query: query})
	for {
		body, err := page.await()
		if err != nil {
			return nil, err
		}
		next := nextOf(body)
		if next != "" {
			query.Set("after", next)
			page = c.begin(ctx, call{method: http.MethodGet, path: path, query: query})
		}
		list, err := decode[List[T]](body, nil)
		if err == nil && list.Next != next {
			err = corral.Errorf(corral.Internal, "reading the answer: a list ends with %q, not %q", next, list.Next)
		}
		switch all = append(all, list.Items...); {
		case err != nil:
			cancel()
			_, _ = page.await()
			return nil, err
		case next == "":
			return all, nil
		}
	}
}

// nextOf returns the Next of a List without the decoding of its items, behind which it stands.
func nextOf(list []byte) string {
	var end struct{ Next string }
	behind, _ := bytes.CutPrefix(list[bytes.LastIndexByte(list, ']')+1:], []byte(","))
	_ = json.Unmarshal(append([]byte("{"), behind...), &end) // a list that is not JSON is found out as a whole
	return end.Next
}

// An inFlight is a request that is under way while something else is done.
type inFlight struct {
	done chan struct{} // closed when the rest is there
	body []byte
	err  error
}

// begin sends a request, whose query must not change before its answer is awaited.
func (c *Client) begin(ctx context.Context, do call) *inFlight {
	f := &inFlight{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.body, f.err = c.do(ctx, do)
	}()
	return f
}

func (f *inFlight) await() ([]byte, error) {
	<-f.done
	return f.body, f.err
}

func decode[T any](body []byte, err error) (T, error) {
	var v T
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, corral.Errorf(corral.Internal, "reading the answer: %w", err)
	}
	return v, nil
}

// maxAnswer is how long an answer may be. The longest are logs of tasks.
const maxAnswer = 1 << 30

// do sends a request and returns the body of its answer. An error answer is returned as *Problem.
func (c *Client) do(ctx context.Context, do call) ([]byte, error) {
	ctx, sent := retry.Track(ctx)
	req, err := c.request(ctx, do)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, do, sent, err)
	}
	defer resp.Body.Close()
	body, err := input.ReadAll(resp.Body, maxAnswer)
	var tooLong *input.TooLongError
	if errors.As(err, &tooLong) {
		return nil, c.strange(do, "answered %s %s with something %w", do.method, do.path, tooLong)
	}
	if err != nil {
		sent.Broke()
		return nil, c.lost(ctx, do, sent, err)
	}
	if resp.StatusCode >= 300 {
		return nil, c.problem(do, resp, body)
	}
	return body, nil
}

// request makes the HTTP request of a call. Its body is read again for each try, so it is kept as bytes; a call
// without a body has none, which is another thing than an empty one.
func (c *Client) request(ctx context.Context, do call) (*retryablehttp.Request, error) {
	target := c.base + do.path
	if len(do.query) > 0 {
		target += "?" + do.query.Encode()
	}
	var body any // a nil []byte in it would be an empty body, not none
	if do.body != nil {
		body = bytes.NewReader(do.body)
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, do.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if do.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if do.key != "" {
		req.Header.Set(KeyHeader, do.key)
	}
	return req, nil
}

// problem reads an error answer. One that is not a problem document did not come from corrald but from something in
// between, a proxy for example, so whether a change was made is not known.
func (c *Client) problem(do call, resp *http.Response, body []byte) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p Problem
	if media == ProblemMediaType && json.Unmarshal(body, &p) == nil && p.Type != "" {
		return &p
	}
	return c.strange(do, "answered %q to %s %s, which is not how corrald answers", resp.Status, do.method, do.path)
}

// strange is the error for an answer that cannot be used: whether a change was made is not known.
func (c *Client) strange(do call, format string, args ...any) error {
	kind := corral.Unavailable
	if do.method != http.MethodGet {
		kind = corral.Unknown
	}
	return corral.ErrorAt(kind, c.server, format, args...)
}

// lost describes a request that got no answer: Unknown if it is a change and may have been done.
func (c *Client) lost(ctx context.Context, do call, sent *retry.Sending, err error) error {
	kind := corral.Unavailable
	if do.method != http.MethodGet && sent.Unsure() {
		kind = corral.Unknown
	}
	if kind == corral.Unavailable && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = corral.Timeout
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // what it says besides is said below, and its URL is not the user's
	}
	return corral.ErrorAt(kind, c.server, "no answer to %s %s: %w", do.method, do.path, err)
}
