package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// personalActor is who asks in personal mode: the socket lets nobody else in.
const personalActor = "local"

// actor returns who asks.
func actor(echo.Context) string { return personalActor }

// A step is a change in two parts. Whatever takes long or may fail for reasons outside the store was
// done before there is a step.
type step[Out any] struct {
	write func(tx *store.Tx) (Out, error) // the change itself; what it returns is the answer
	done  func(Out)                       // after the commit; nil: nothing
	undo  func()                          // instead of done, if there is no commit; nil: nothing
}

// only is a step that consists of its transaction.
func only[Out any](write func(*store.Tx) (Out, error)) (step[Out], error) {
	return step[Out]{write: write}, nil
}

// read answers with what look returns from one consistent view of the store.
func read[Out any](s *Server, c echo.Context, look func(*store.Tx) (Out, error)) error {
	var out Out
	err := s.db.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		out, err = look(tx)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// A command is one request for a change, as it arrived.
type command struct {
	status int // of the answer, if it succeeds
	key    store.OnceKey
}

// change decodes a request, lets prepare look at it, performs the step, and answers with what it
// returns. A request whose key has an answer gets that one, and nothing is done.
func change[In, Out any](s *Server, c echo.Context, status int, prepare func(context.Context, In) (step[Out], error)) error {
	var in In
	body, err := decodeBody(c, &in)
	if err != nil {
		return err
	}
	key, err := onceKey(c, body)
	if err != nil {
		return err
	}
	cmd := command{status, key}
	answer, kept, err := s.kept(c.Request().Context(), cmd)
	if err != nil || kept {
		return respond(c, answer, err)
	}
	st, err := prepare(c.Request().Context(), in)
	if err != nil {
		return err
	}
	answer, err = perform(s, c.Request().Context(), cmd, st)
	return respond(c, answer, err)
}

var errNotKept = errors.New("no answer is kept under this key")

// kept returns the answer that is kept under the command's key. It looks before anything is prepared,
// so that a repetition costs nothing and is not refused for what has changed since.
func (s *Server) kept(ctx context.Context, cmd command) (answer store.Answer, kept bool, err error) {
	if cmd.key.Key == "" {
		return answer, false, nil
	}
	err = s.db.Write(ctx, cmd.key.Actor, func(tx *store.Tx) (err error) {
		answer, kept, err = tx.Once(cmd.key, func() (store.Answer, error) { return store.Answer{}, errNotKept })
		return err
	})
	if errors.Is(err, errNotKept) {
		err = nil
	}
	return answer, kept, err
}

// perform runs a step in one transaction with the keeping of its answer.
func perform[Out any](s *Server, ctx context.Context, cmd command, st step[Out]) (store.Answer, error) {
	var out Out
	var answer store.Answer
	var kept bool
	err := s.db.Write(ctx, cmd.key.Actor, func(tx *store.Tx) (err error) {
		answer, kept, err = tx.Once(cmd.key, func() (store.Answer, error) {
			if out, err = st.write(tx); err != nil {
				return store.Answer{}, err
			}
			body, err := json.Marshal(out)
			return store.Answer{Status: cmd.status, Body: append(body, '\n')}, err
		})
		return err
	})
	switch {
	case err == nil && !kept && st.done != nil:
		st.done(out)
	case (err != nil || kept) && st.undo != nil:
		st.undo()
	}
	return answer, err
}

func respond(c echo.Context, answer store.Answer, err error) error {
	if err != nil {
		return err
	}
	return c.JSONBlob(answer.Status, answer.Body)
}

// onceKey returns the request's idempotency key and what it binds: method, target and body.
func onceKey(c echo.Context, body []byte) (store.OnceKey, error) {
	r := c.Request()
	keys := r.Header.Values(api.KeyHeader)
	if len(keys) == 0 {
		return store.OnceKey{Actor: actor(c)}, nil
	}
	if len(keys) > 1 {
		return store.OnceKey{}, corral.ErrorAt(corral.Invalid, api.KeyHeader, "is given %d times; give it once", len(keys))
	}
	if err := api.CheckKey(api.KeyHeader, keys[0]); err != nil {
		return store.OnceKey{}, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n", r.Method, r.URL.RequestURI())
	h.Write(body)
	return store.OnceKey{Actor: actor(c), Key: keys[0], Request: hex.EncodeToString(h.Sum(nil))}, nil
}
