package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// answerOrWait answers with what load returns: at once, or with ?wait= when the object is where it is
// waited for, moves no further by itself, or the time is over; then as it is.
func answerOrWait[T any](s *Server, c echo.Context, until func(list string) (func(T) api.Progress, error), load func(*store.Tx) (T, error)) error {
	q := queryOf(c, "wait", "timeout_s")
	timeout := q.timeout()
	if q.err != nil {
		return q.err
	}
	if !q.values.Has("wait") {
		return read(s, c, load)
	}
	progress, err := until(q.values.Get("wait"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	v, err := watch(s, ctx, load, func(v T) bool { return progress(v).Done() })
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

// watch loads an object again after each change until it is done or ctx's deadline is over.
func watch[T any](s *Server, ctx context.Context, load func(*store.Tx) (T, error), done func(T) bool) (T, error) {
	var v T
	look := context.WithoutCancel(ctx) // a wait that is over still has an answer
	for {
		recorded, registered := s.db.Changed(), s.workers.Changed()
		err := s.db.View(look, func(tx *store.Tx) (err error) {
			v, err = load(tx)
			return err
		})
		if err != nil || done(v) {
			return v, err
		}
		select {
		case <-recorded:
		case <-registered:
		case <-s.stopping:
			return v, corral.Errorf(corral.Unavailable, "corrald is stopping")
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				return v, nil
			}
			return v, ctx.Err()
		}
	}
}
