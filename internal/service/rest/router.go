package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A Router is an http.Handler that answers with its routes. A request whose context has no caller (package access)
// came through a socket that admits only corrald's own user: any listener that admits other users must set the
// caller.
type Router struct {
	// Answered, unless it is nil, is called for each request with its route, which is empty if there is none. It must
	// be set before the first request.
	Answered func(method, route string, status int, took time.Duration)

	// Audit gets a line for each request that may have changed something, regardless of its caller and result.
	Audit *slog.Logger

	lg   *slog.Logger
	echo *echo.Echo
	pace Pace
}

// NewRouter returns a router. Requests' bodies must arrive at the pace.
func NewRouter(lg *slog.Logger, pace Pace, routes []Route) *Router {
	rt := &Router{lg: lg, Audit: lg, echo: echo.New(), pace: pace}
	rt.echo.HTTPErrorHandler = rt.writeProblem
	rt.echo.Use(rt.observe)
	for _, r := range routes {
		rt.echo.Add(r.Method, r.Path, r.handle)
	}
	return rt
}

// handle reads the query, which must have no unknown parameters, and answers.
func (r Route) handle(c echo.Context) error {
	q := request.ReadQuery(c.Request().URL.RawQuery, r.Parameters...)
	if q.Err() != nil {
		return q.Err()
	}
	return r.answer(&Call{Query: q, echo: c, maxBody: r.maxBody, ahead: r.ahead})
}

// ServeHTTP answers one request.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(access.With(r.Context(), callerOf(r)))
	rt.pace.bound(w, r)
	rt.echo.ServeHTTP(w, r)
}

// callerOf returns the sender of a request.
func callerOf(r *http.Request) access.Caller {
	if caller, ok := access.From(r.Context()); ok {
		return caller
	}
	return access.Local
}

// observe answers with the error of a handler, and logs each request that may have changed something or encountered a
// defect. A panic is a defect. Reads are not logged, because waiting clients send them all the time.
func (rt *Router) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		err := recovered(next, c)
		if err != nil {
			c.Error(err)
		}
		took := time.Since(begin)
		rt.logRequest(c, err, took)
		if rt.Answered != nil {
			rt.Answered(c.Request().Method, c.Path(), c.Response().Status, took)
		}
		return nil
	}
}

// recovered calls next and turns a panic into an error.
func recovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // net/http's own signal to drop the connection
			panic(p)
		default:
			err = corral.Errorf(corral.Internal, "panic: %v\n%s", p, debug.Stack())
		}
	}()
	return next(c)
}

func (rt *Router) logRequest(c echo.Context, err error, took time.Duration) {
	r := c.Request()
	caller := callerOf(r)
	attrs := []any{"method", r.Method, "path", r.URL.Path, "status", c.Response().Status,
		"took_ms", took.Milliseconds(), "actor", caller.Name}
	if caller.Token != 0 {
		attrs = append(attrs, "token", caller.Token, "from", r.RemoteAddr)
	}
	if key := r.Header.Get(api.KeyHeader); key != "" {
		attrs = append(attrs, "key", key)
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	gone := errors.Is(err, context.Canceled)
	switch {
	case corral.KindOf(err) == corral.Internal && !isRouting(err) && !gone:
		rt.lg.Error("request failed", attrs...)
		if rt.Audit != rt.lg && r.Method != http.MethodGet {
			rt.Audit.Info("request", attrs...)
		}
	case r.Method != http.MethodGet:
		rt.Audit.Info("request", attrs...)
	}
}

func isRouting(err error) bool {
	var routing *echo.HTTPError
	return errors.As(err, &routing)
}
