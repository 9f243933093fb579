package retry

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A client made by NewClient sends requests to corrald again that got no answer, or came too often.
//
// How long depends on the request. The first request of a command fails within seconds if corrald does not answer. A
// command that waits for something has reached corrald before: its requests (Patiently) tolerate a minute of silence,
// also if the socket is gone, which a corrald that ends in order removes. A request that changes something has a key,
// so that it can be sent again safely; a Sending remembers whether it may have been done.

// A request is sent up to retries+1 times; the waits between sum to about three seconds. That is enough for a corrald
// that is quickly started again, and little for somebody who asks one that is not there. Who waits for something has
// heard of corrald before, and bears its silence for as long as outlast.
const (
	retries = 5
	waitMin = 100 * time.Millisecond
	waitMax = 2 * time.Second
	outlast = time.Minute
)

// longestRetry is the longest wait that a 429 is believed with its Retry-After. Longer ones are an error at once: a
// command must not seem to hang, whoever between here and corrald has sent it.
const longestRetry = time.Minute

// NewClient returns a client that repeats what got no answer, what got 503, and what came too often (429), after the
// time that the answer says. It repeats changes too: each carries an idempotency key.
func NewClient(transport *http.Transport) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport},
		RetryMax:     math.MaxInt32, // checkRetry counts
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

// A Sending remembers, over all repetitions of a request, how many there were, and whether corrald may have acted on
// one.
type Sending struct {
	wrote  atomic.Bool // this attempt reached the connection
	unsure atomic.Bool // an attempt that did was never answered

	begun   time.Time
	tries   int
	patient bool
}

// Unsure reports whether an attempt that corrald may have heard of was never answered.
func (s *Sending) Unsure() bool { return s.unsure.Load() }

// Broke notes that an answer did not come whole.
func (s *Sending) Broke() { s.unsure.Store(true) }

// again reports whether another attempt may follow one more that failed.
func (s *Sending) again() bool {
	s.tries++
	return s.tries <= retries || s.patient && time.Since(s.begun) < outlast
}

type sendingKey struct{}

type patientKey struct{}

// Patiently returns a context whose requests outlast a restart of corrald: one that gets no answer is sent again for a
// minute, in place of three seconds.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}

// Track returns a context for one request, and what is remembered of its repetitions.
func Track(ctx context.Context) (context.Context, *Sending) {
	s := &Sending{begun: time.Now(), patient: ctx.Value(patientKey{}) != nil}
	ctx = context.WithValue(ctx, sendingKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { s.wrote.Store(true) },
	}), s
}

// checkRetry decides after each attempt whether another follows.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	s := ctx.Value(sendingKey{}).(*Sending)
	if wrote := s.wrote.Swap(false); wrote && err != nil {
		s.unsure.Store(true)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, fs.ErrNotExist) && !s.patient: // no socket: corrald was not killed, it is not there
		return false, nil
	case err != nil:
		return s.again(), nil
	}
	if wait, limited := retryAfter(resp); limited {
		return wait <= longestRetry && s.again(), nil
	}
	return resp.StatusCode == http.StatusServiceUnavailable && s.again(), nil
}
