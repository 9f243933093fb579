package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral"
)

// A request is sent up to retries+1 times; the waits between sum to about three seconds, enough for a
// corrald that is being restarted.
const (
	retries = 5
	waitMin = 100 * time.Millisecond
	waitMax = 2 * time.Second
)

// longestRetry is the longest wait that a 429 is believed with its Retry-After. Longer ones are an error at once: a
// command must not seem to hang, whoever between here and corrald has sent it.
const longestRetry = time.Minute

// newRetrying returns a client that repeats what got no answer, what got 503, and what came too often (429), after the
// time that the answer says. It repeats changes too: each carries an idempotency key.
func newRetrying(transport *http.Transport) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport},
		RetryMax:     retries,
		RetryWaitMin: waitMin,
		RetryWaitMax: waitMax,
		CheckRetry:   checkRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		// Without the answer of a 503, so that a Retry-After, whoever sent it, cannot make a command hang.
		Backoff: func(lo, hi time.Duration, n int, resp *http.Response) time.Duration {
			if wait, limited := retryAfter(resp); limited {
				return max(wait, retryablehttp.DefaultBackoff(lo, hi, n, nil))
			}
			return retryablehttp.DefaultBackoff(lo, hi, n, nil)
		},
	}
}

// retryAfter is how long a 429 asks to wait; limited is false for all other answers.
func retryAfter(resp *http.Response) (wait time.Duration, limited bool) {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return waitMax, true
	}
	return time.Duration(seconds) * time.Second, true
}

// A sending remembers, over all repetitions of a request, whether corrald may have acted on one.
type sending struct {
	wrote  atomic.Bool // this attempt reached the connection
	unsure atomic.Bool // an attempt that did was never answered
}

type sendingKey struct{}

// track returns a context whose requests are remembered.
func track(ctx context.Context) (context.Context, *sending) {
	s := &sending{}
	ctx = context.WithValue(ctx, sendingKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { s.wrote.Store(true) },
	}), s
}

// checkRetry decides after each attempt whether another follows.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	s := ctx.Value(sendingKey{}).(*sending)
	if wrote := s.wrote.Swap(false); wrote && err != nil {
		s.unsure.Store(true)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, fs.ErrNotExist): // no socket: corrald was not killed, it is not there
		return false, nil
	case err != nil:
		return true, nil
	}
	if wait, limited := retryAfter(resp); limited {
		return wait <= longestRetry, nil
	}
	return resp.StatusCode == http.StatusServiceUnavailable, nil
}

// lost describes a request that got no answer: Unknown if it is a change and may have been done.
func (c *Client) lost(ctx context.Context, do call, sent *sending, err error) error {
	kind := corral.Unavailable
	if do.method != http.MethodGet && sent.unsure.Load() {
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
