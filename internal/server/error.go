package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// writeProblem is echo's HTTPErrorHandler: every error becomes a problem document. Echo's own handler
// does not look into wrapped errors.
func (s *Server) writeProblem(err error, c echo.Context) {
	if c.Response().Committed {
		return // the answer was on its way; the peer sees it cut off
	}
	p := problemOf(c, err)
	c.Response().Header().Set(echo.HeaderContentType, api.ProblemMediaType)
	c.Response().WriteHeader(p.Status)
	if err := json.NewEncoder(c.Response()).Encode(p); err != nil {
		s.lg.Debug("peer went away", "path", c.Request().URL.Path, "err", err)
	}
}

// problemOf describes err. What echo's router says gets a kind of ours but keeps its HTTP status.
func problemOf(c echo.Context, err error) *api.Problem {
	var routing *echo.HTTPError
	var exact *api.Problem
	var silent silentSite
	path := c.Request().URL.Path
	switch {
	case errors.As(err, &exact): // about a body, whose end may be the request's
		return exact
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return api.ProblemOf(corral.ErrorAt(corral.NotFound, path, "there is no such resource"))
	case errors.As(err, &routing) && routing.Code < http.StatusInternalServerError:
		return withStatus(routing.Code, corral.ErrorAt(corral.Invalid, c.Request().Method+" "+path, "%v", routing.Message))
	case errors.As(err, &silent):
		return withStatus(http.StatusBadGateway, silent.error)
	case c.Request().Context().Err() != nil:
		return api.ProblemOf(corral.Errorf(corral.Unknown, "the request was given up before it was answered"))
	}
	return api.ProblemOf(err)
}

// withStatus is a problem whose HTTP status is more exact than its kind's.
func withStatus(status int, err error) *api.Problem {
	p := api.ProblemOf(err)
	p.Status = status
	return p
}

// observe writes the error of a handler as its answer and logs requests that changed something or met
// a defect. A panic is a defect.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		err := s.recovered(next, c)
		if err != nil {
			c.Error(err)
		}
		s.logRequest(c, err, time.Since(begin))
		return nil
	}
}

// recovered calls next and makes an error of a panic.
func (s *Server) recovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // net/http's own word for: drop this connection
			panic(p)
		default:
			err = corral.Errorf(corral.Internal, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return next(c)
}

func (s *Server) logRequest(c echo.Context, err error, took time.Duration) {
	r := c.Request()
	attrs := []any{"method", r.Method, "path", r.URL.Path, "status", c.Response().Status,
		"took_ms", took.Milliseconds(), "actor", actor(c)}
	if key := r.Header.Get(api.KeyHeader); key != "" {
		attrs = append(attrs, "key", key)
	}
	if err != nil {
		attrs = append(attrs, "err", err)
	}
	gone := errors.Is(err, context.Canceled)
	switch {
	case corral.KindOf(err) == corral.Internal && !isRouting(err) && !gone:
		s.lg.Error("request failed", attrs...)
	case r.Method != http.MethodGet:
		s.lg.Info("request", attrs...)
	}
}

func isRouting(err error) bool {
	var routing *echo.HTTPError
	return errors.As(err, &routing)
}

// placed gives an error of this kind the place where the request names what it is about.
func placed(kind corral.Kind, place string, err error) error {
	if corral.KindOf(err) == kind {
		return corral.ErrorAt(kind, place, "%w", err)
	}
	return err
}

// missing is placed for what was not found.
func missing(place string, err error) error { return placed(corral.NotFound, place, err) }
