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

// answerTimeout limits the wait for the beginning of an answer: it is the longest wait that a request may specify,
// doubled to allow for a busy machine.
const answerTimeout = 2 * MaxWait

// A Client sends requests to one corrald. Several goroutines may use it at once.
type Client struct {
	server string // as the user wrote it
	base   string // URL without a trailing slash
	token  string // empty: none
	http   *retryablehttp.Client
}

// New returns a client for server, which is unix:PATH, http://HOST[:PORT] or https://HOST[:PORT]. It does not connect.
func New(server string) (*Client, error) { return Dial(server, Options{}) }

// Server returns the URL of the client's corrald in the form that New accepts.
func (c *Client) Server() string { return c.server }

// Close closes idle connections.
func (c *Client) Close() { c.http.HTTPClient.CloseIdleConnections() }

// A call is one request, which may be sent several times.
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

// change sends a change. If the call has no key, a random key is added, so that the client's own repetitions are safe
// even for callers that do not use keys.
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

// create sends a request by POST.
func create[T any](ctx context.Context, c *Client, path, key string, request any) (T, error) {
	return send[T](ctx, c, call{method: http.MethodPost, path: path, key: key}, request)
}

// act sends a POST whose path is the whole request: an object, followed by a verb.
func act[T any](ctx context.Context, c *Client, path string) (T, error) {
	return change[T](ctx, c, call{method: http.MethodPost, path: path})
}

// remove requests the removal of an object.
func remove[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return change[T](ctx, c, call{method: http.MethodDelete, path: path, query: query})
}

// list reads all pages of a list. Each page is read separately: objects created in the meantime may appear on the last
// page. The next page is requested while the previous page is decoded, so that a list of 100,000 tasks keeps both sides
// busy.
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

// nextOf returns the Next of a List, which follows the items, without decoding the items.
func nextOf(list []byte) string {
	var end struct{ Next string }
	behind, _ := bytes.CutPrefix(list[bytes.LastIndexByte(list, ']')+1:], []byte(","))
	_ = json.Unmarshal(append([]byte("{"), behind...), &end) // a list that is not JSON is detected when it is decoded
	return end.Next
}

// An inFlight is a request in progress.
type inFlight struct {
	done chan struct{} // closed when body and err are set
	body []byte
	err  error
}

// begin sends a request. Its query must not change until the answer has been awaited.
func (c *Client) begin(ctx context.Context, do call) *inFlight {
	f := &inFlight{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.body, f.err = c.do(ctx, do)
	}()
	return f
}

// await waits for the request and returns its result.
func (f *inFlight) await() ([]byte, error) {
	<-f.done
	return f.body, f.err
}

// decode parses the body of an answer; an err from the request takes precedence.
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

// maxAnswer is the maximum length of an answer in bytes. The longest answers are logs of tasks.
const maxAnswer = 1 << 30

// do sends a request and returns the body of its answer. An error answer is returned as a *Problem.
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
	if tooLong, ok := errors.AsType[*input.TooLongError](err); ok {
		return nil, c.strange(do, "the answer to %s %s is %w", do.method, do.path, tooLong)
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

// request creates the HTTP request of a call. The body is kept as bytes, because each attempt reads it again. A call
// without a body sends no body, which differs from an empty body.
func (c *Client) request(ctx context.Context, do call) (*retryablehttp.Request, error) {
	target := c.base + do.path
	if len(do.query) > 0 {
		target += "?" + do.query.Encode()
	}
	var body any // a nil []byte in an interface would be an empty body, not none
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

// problem reads an error answer. An answer that is not a problem document comes from a program between client and
// corrald, such as a proxy, so it is unknown whether a change was made.
func (c *Client) problem(do call, resp *http.Response, body []byte) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p Problem
	if media == ProblemMediaType && json.Unmarshal(body, &p) == nil && p.Type != "" {
		return &p
	}
	return c.strange(do, "the answer %q to %s %s does not come from corrald", resp.Status, do.method, do.path)
}

// strange returns the error for an unusable answer, after which it is unknown whether a change was made.
func (c *Client) strange(do call, format string, args ...any) error {
	kind := corral.Unavailable
	if do.method != http.MethodGet {
		kind = corral.Unknown
	}
	return corral.ErrorAt(kind, c.server, format, args...)
}

// lost returns the error for a request without an answer. Its kind is Unknown if the request is a change that may have
// been made.
func (c *Client) lost(ctx context.Context, do call, sent *retry.Sending, err error) error {
	kind := corral.Unavailable
	if do.method != http.MethodGet && sent.Unsure() {
		kind = corral.Unknown
	}
	if kind == corral.Unavailable && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = corral.Timeout
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // the message below repeats the rest, and the user does not know this URL
	}
	return corral.ErrorAt(kind, c.server, "no answer to %s %s: %w", do.method, do.path, err)
}
