package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
)

// writeProblem is echo's HTTPErrorHandler: it turns every error into a problem document. Echo's own handler does not
// unwrap errors.
func (rt *Router) writeProblem(err error, c echo.Context) {
	if c.Response().Committed {
		return // the answer was partly sent; the peer sees it truncated
	}
	p := problemOf(c, err)
	if early, ok := errors.AsType[*access.TooMany](err); ok {
		p.Status = http.StatusTooManyRequests
		c.Response().Header().Set("Retry-After", strconv.Itoa(early.Seconds()))
	}
	c.Response().Header().Set(echo.HeaderContentType, api.ProblemMediaType)
	c.Response().WriteHeader(p.Status)
	if err := json.NewEncoder(c.Response()).Encode(p); err != nil {
		rt.lg.Debug("peer went away", "path", c.Request().URL.Path, "error", err)
	}
}

// problemOf describes err. An error of echo's router gets one of our kinds but keeps its HTTP status.
func problemOf(c echo.Context, err error) *api.Problem {
	var routing *echo.HTTPError
	var exact *api.Problem
	path := c.Request().URL.Path
	switch {
	case errors.As(err, &exact): // about a body; a truncated body may also have ended the request
		return exact
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return api.ProblemOf(corral.ErrorAt(corral.NotFound, path, "there is no such resource"))
	case errors.As(err, &routing) && routing.Code < http.StatusInternalServerError:
		route := c.Request().Method + " " + path
		return WithStatus(routing.Code, corral.ErrorAt(corral.Invalid, route, "%v", routing.Message))
	case c.Request().Context().Err() != nil:
		return api.ProblemOf(corral.Errorf(corral.Unknown, "the request was cancelled before it was answered"))
	}
	return api.ProblemOf(err)
}

// WithStatus describes err as a problem with a more specific HTTP status than its kind's.
func WithStatus(status int, err error) *api.Problem {
	p := api.ProblemOf(err)
	p.Status = status
	return p
}

// Placed adds a place to an error of the given kind: where the request names the object that the error is about.
func Placed(kind corral.Kind, place string, err error) error {
	if corral.KindOf(err) == kind {
		return corral.ErrorAt(kind, place, "%w", err)
	}
	return err
}

// Missing is Placed for errors of kind NotFound.
func Missing(place string, err error) error { return Placed(corral.NotFound, place, err) }
