package api

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/kit/retry"
)

// A waiting describes a wait for an object to meet a condition.
type waiting[T any] struct {
	until    Until
	timeout  time.Duration // 0: none
	progress func(T) Progress
}

// wait polls corrald, each time with the longest wait that corrald allows, until the condition is met or can no longer
// be met. After a first answer, the wait continues across a restart of corrald.
func wait[T any](ctx context.Context, c *Client, path string, w waiting[T]) (T, error) {
	end := time.Now().Add(w.timeout)
	for {
		left := MaxWait
		if w.timeout != 0 {
			left = max(0, min(left, time.Until(end)))
		}
		v, err := get[T](ctx, c, path, url.Values{
			"wait":      {strings.Join(w.until, ",")},
			"timeout_s": {strconv.FormatFloat(left.Seconds(), 'f', 3, 64)},
		})
		if err != nil {
			return v, err
		}
		ctx = retry.Patiently(ctx)
		switch p := w.progress(v); {
		case p.Met:
			return v, nil
		case p.Over:
			return v, w.until.vain(p)
		case w.timeout != 0 && time.Now().After(end):
			return v, w.until.Late(p, w.timeout)
		}
	}
}
