package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// A target is an object that can be waited for.
type target[T any] struct {
	load  func(*store.Tx) (T, error)
	about func(T) store.Subject
	until func(list string) (func(T) api.Progress, error)
}

// answerOrWait answers with the target: at once, or with ?wait= when it is where it is waited for, moves
// no further by itself, or the time is over; then as it is.
func answerOrWait[T any](s *Server, c echo.Context, t target[T]) error {
	q := queryOf(c, "wait", "timeout_s")
	timeout := q.timeout()
	if q.err != nil {
		return q.err
	}
	if !q.values.Has("wait") {
		return read(s, c, t.load)
	}
	progress, err := t.until(q.values.Get("wait"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	v, err := watch(s, ctx, t, func(v T) bool { return progress(v).Done() })
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

// watch loads a target again after each of its changes until it is done or ctx's deadline is over. The
// first look only finds out which object it is.
func watch[T any](s *Server, ctx context.Context, t target[T], done func(T) bool) (v T, err error) {
	unending := context.WithoutCancel(ctx) // a wait that is over still has an answer
	look := func() (v T, err error) {
		err = s.db.View(unending, func(tx *store.Tx) error {
			v, err = t.load(tx)
			return err
		})
		return v, err
	}
	for v, err = look(); err == nil; {
		recorded, registered := s.db.Changed(t.about(v)), s.workers.Changed()
		if v, err = look(); err != nil || done(v) {
			break
		}
		select {
		case <-recorded:
		case <-registered:
		case <-s.stopping:
			return v, errStopping
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				return v, nil
			}
			return v, ctx.Err()
		}
	}
	return v, err
}
