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

// A client made by NewClient retries requests to corrald that received no answer, or were sent too often.
//
// The time for which a request is retried depends on the request. The first request of a command fails within seconds
// if corrald does not answer. A command that waits for an event has reached corrald before: its requests (Patiently)
// tolerate a minute of silence, even if the socket is missing, because corrald removes the socket when it ends in an
// orderly way. A request that makes a change contains a key, so that it can safely be repeated; a Sending records
// whether it may have been carried out.

// A request is sent up to retries+1 times; the pauses add up to about three seconds. This is long enough if corrald is
// restarted quickly, and short for a user whose corrald is not running. A patient request is retried for the time
// outlast.
const (
	retries = 5
	waitMin = 100 * time.Millisecond
	waitMax = 2 * time.Second
	outlast = time.Minute
)

// longestRetry is the longest Retry-After of a 429 that is obeyed. A longer time is an error at once: a command must
// not seem to hang, regardless of which server sent the header.
const longestRetry = time.Minute

// NewClient returns a client that retries requests that received no answer, a 503, or a 429, a 429 after the time given
// in the answer. The client also retries changes: each change has an idempotency key.
func NewClient(transport *http.Transport) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport},
		RetryMax:     math.MaxInt32, // checkRetry counts
		RetryWaitMin: waitMin,
		RetryWaitMax: waitMax,
		CheckRetry:   checkRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		// A Retry-After of a 503 is ignored, because it could make a command hang, whichever server sent it.
		Backoff: func(lo, hi time.Duration, n int, resp *http.Response) time.Duration {
			if wait, limited := retryAfter(resp); limited {
				return max(wait, retryablehttp.DefaultBackoff(lo, hi, n, nil))
			}
			return retryablehttp.DefaultBackoff(lo, hi, n, nil)
		},
	}
}

// retryAfter returns the time for which a 429 asks the client to wait; limited is false for all other answers.
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

// A Sending records the number of repetitions of a request, and whether corrald may have carried out any of them.
type Sending struct {
	wrote  atomic.Bool // this attempt reached the connection
	unsure atomic.Bool // an attempt that reached the connection was never answered

	begun   time.Time
	tries   int
	patient bool
}

// Unsure reports whether an attempt that may have reached corrald was never answered.
func (s *Sending) Unsure() bool { return s.unsure.Load() }

// Broke records that an answer was incomplete.
func (s *Sending) Broke() { s.unsure.Store(true) }

// again counts a failed attempt and reports whether another may follow.
func (s *Sending) again() bool {
	s.tries++
	return s.tries <= retries || s.patient && time.Since(s.begun) < outlast
}

type sendingKey struct{}

type patientKey struct{}

// Patiently returns a context whose requests survive a restart of corrald: an unanswered request is retried for a
// minute instead of three seconds.
func Patiently(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}

// Track returns a context for one request, and the record of its repetitions.
func Track(ctx context.Context) (context.Context, *Sending) {
	s := &Sending{begun: time.Now(), patient: ctx.Value(patientKey{}) != nil}
	ctx = context.WithValue(ctx, sendingKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { s.wrote.Store(true) },
	}), s
}

// checkRetry decides after each attempt whether to retry.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	s := ctx.Value(sendingKey{}).(*Sending)
	if wrote := s.wrote.Swap(false); wrote && err != nil {
		s.unsure.Store(true)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, fs.ErrNotExist) && !s.patient: // no socket: corrald was not killed, it is not running
		return false, nil
	case err != nil:
		return s.again(), nil
	}
	if wait, limited := retryAfter(resp); limited {
		return wait <= longestRetry && s.again(), nil
	}
	return resp.StatusCode == http.StatusServiceUnavailable && s.again(), nil
}
