package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A Route is one operation of the API: the form of its requests, and the function that answers them.
type Route struct {
	Method, Path string   // /v1/sites/:site has the parameter site
	Parameters   []string // allowed in the query; requests with others are refused before answer is called

	answer  func(*Call) error
	maxBody int64 // bytes
	ahead   func(*Call, Head) error
}

// Get returns a route that changes nothing.
func Get(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodGet, path, parameters, answer, api.MaxBody, nil}
}

// Post returns a route that creates an object or starts an action.
func Post(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodPost, path, parameters, answer, api.MaxBody, nil}
}

// Put returns a route that creates the object named by its path.
func Put(path string, answer func(*Call) error) Route {
	return Route{http.MethodPut, path, nil, answer, api.MaxBody, nil}
}

// Patch returns a route that changes fields of an object.
func Patch(path string, answer func(*Call) error) Route {
	return Route{http.MethodPatch, path, nil, answer, api.MaxBody, nil}
}

// Delete returns a route that removes an object.
func Delete(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodDelete, path, parameters, answer, api.MaxBody, nil}
}

// WithBody returns the route with the given maximum body size in bytes.
func (r Route) WithBody(most int64) Route {
	r.maxBody = most
	return r
}

// A Call is one request to a route.
type Call struct {
	Query *request.Query

	echo    echo.Context
	maxBody int64
	ahead   func(*Call, Head) error
}

// Context returns the request's context, which ends when the client disconnects.
func (c *Call) Context() context.Context { return c.echo.Request().Context() }

// Caller returns the caller. Everything that uses the call's Context is done on their behalf.
func (c *Call) Caller() access.Caller { return callerOf(c.echo.Request()) }

// Actor returns the caller's name, which is the owner of new objects.
func (c *Call) Actor() string { return c.Caller().Name }

// Key returns the request's idempotency key, or "" if it has none. Create and Change have checked it.
func (c *Call) Key() string { return c.echo.Request().Header.Get(api.KeyHeader) }

// Param returns a parameter of the path. If the path is written in an unusual way, Echo leaves escapes in it.
func (c *Call) Param(name string) string {
	v := c.echo.Param(name)
	if c.echo.Request().URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v // unreachable: net/http refuses a path with an invalid escape
}

// Header returns a header of the request, or "" if it is missing.
func (c *Call) Header(name string) string { return c.echo.Request().Header.Get(name) }

// Pass lets another handler answer.
func (c *Call) Pass(h http.Handler) error {
	h.ServeHTTP(c.echo.Response(), c.echo.Request())
	return nil
}

// Live begins a continuous answer and returns a function that sends a piece of it at once. If a client does not
// accept a piece within patience, send fails and the connection becomes unusable.
func (c *Call) Live(media string, patience time.Duration) (send func([]byte) error) {
	header := c.echo.Response().Header()
	header.Set(echo.HeaderContentType, media)
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no") // otherwise nginx would hold back events until a buffer is full
	c.echo.Response().WriteHeader(http.StatusOK)
	control := http.NewResponseController(c.echo.Response())
	return func(piece []byte) error {
		// It fails only in tests without a connection.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
		if _, err := c.echo.Response().Write(piece); err != nil {
			return err
		}
		return control.Flush()
	}
}

// JSON answers with v.
func (c *Call) JSON(v any) error { return c.echo.JSON(http.StatusOK, v) }

// Document answers with a document of ours.
func (c *Call) Document(media string, content []byte) error {
	return c.echo.Blob(http.StatusOK, media, content)
}

// FilePart answers like File, but without the first after bytes or, if last is not 0, with only that number of bytes at
// the end.
func (c *Call) FilePart(content io.Reader, after, last int64) error {
	file, ok := content.(io.ReadSeeker)
	if !ok {
		all, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		file = bytes.NewReader(all)
	}
	if last > 0 {
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		after = max(0, size-last)
	}
	if _, err := file.Seek(after, io.SeekStart); err != nil {
		return err
	}
	return c.File(file)
}

// File answers with a file that a process wrote. The file may contain anything, including HTML with scripts, so the
// header prevents browsers from guessing its type.
func (c *Call) File(content io.Reader) error {
	c.echo.Response().Header().Set("X-Content-Type-Options", "nosniff")
	return c.echo.Stream(http.StatusOK, echo.MIMETextPlainCharsetUTF8, content)
}

// Stream answers with a document of ours that is read while it is sent.
func (c *Call) Stream(media string, content io.Reader) error {
	return c.echo.Stream(http.StatusOK, media, content)
}

// Lines answers with lines of JSON.
func (c *Call) Lines(content io.Reader) error {
	return c.echo.Stream(http.StatusOK, api.LinesMediaType, content)
}
