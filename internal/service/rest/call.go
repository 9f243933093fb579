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

// A Route is one operation of the API: what its requests look like, and what answers them.
type Route struct {
	Method, Path string   // /v1/sites/:site has the parameter site
	Parameters   []string // that the query may have; any other is refused before answer is called

	answer  func(*Call) error
	maxBody int64 // bytes
	ahead   func(*Call, Head) error
}

// Get is a route that changes nothing.
func Get(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodGet, path, parameters, answer, api.MaxBody, nil}
}

// Post is a route that creates something, or sets something going.
func Post(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodPost, path, parameters, answer, api.MaxBody, nil}
}

// Put is a route that makes what its path names.
func Put(path string, answer func(*Call) error) Route {
	return Route{http.MethodPut, path, nil, answer, api.MaxBody, nil}
}

// Patch is a route that changes fields of an object.
func Patch(path string, answer func(*Call) error) Route {
	return Route{http.MethodPatch, path, nil, answer, api.MaxBody, nil}
}

// Delete is a route that removes an object.
func Delete(path string, answer func(*Call) error, parameters ...string) Route {
	return Route{http.MethodDelete, path, parameters, answer, api.MaxBody, nil}
}

// WithBody is the route with bodies of so many bytes at most.
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

// Context ends when the client goes away.
func (c *Call) Context() context.Context { return c.echo.Request().Context() }

// Caller returns who asks. Everything that is done with the call's Context is done on their behalf.
func (c *Call) Caller() access.Caller { return callerOf(c.echo.Request()) }

// Actor returns the name of who asks: the owner of what they create.
func (c *Call) Actor() string { return c.Caller().Name }

// Key returns the request's idempotency key, empty if it has none. Create and Change have checked it.
func (c *Call) Key() string { return c.echo.Request().Header.Get(api.KeyHeader) }

// Param returns a parameter of the path. Echo leaves escapes in it if the path was written in an unusual way.
func (c *Call) Param(name string) string {
	v := c.echo.Param(name)
	if c.echo.Request().URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v // unreachable: net/http refuses a path with a bad escape
}

// Header returns a header of the request, empty if it has none.
func (c *Call) Header(name string) string { return c.echo.Request().Header.Get(name) }

// Pass has a handler answer that is not one of ours.
func (c *Call) Pass(h http.Handler) error {
	h.ServeHTTP(c.echo.Response(), c.echo.Request())
	return nil
}

// Live begins an answer that goes on, and returns what sends a piece of it, at once. A client that does not take a
// piece within patience is not waited for: send fails, and the connection is of no use any more.
func (c *Call) Live(media string, patience time.Duration) (send func([]byte) error) {
	header := c.echo.Response().Header()
	header.Set(echo.HeaderContentType, media)
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events until a buffer is full
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

// FilePart is File without its first bytes, after of them, or, if last is not 0, of no more than its last ones.
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

// File answers with a file that a process left. The file may be anything, HTML with scripts included, so the header
// keeps browsers from guessing what it is.
func (c *Call) File(content io.Reader) error {
	c.echo.Response().Header().Set("X-Content-Type-Options", "nosniff")
	return c.echo.Stream(http.StatusOK, echo.MIMETextPlainCharsetUTF8, content)
}

// Stream answers with a document of ours that is read on the way.
func (c *Call) Stream(media string, content io.Reader) error {
	return c.echo.Stream(http.StatusOK, media, content)
}

// Lines answers with lines of JSON.
func (c *Call) Lines(content io.Reader) error {
	return c.echo.Stream(http.StatusOK, api.LinesMediaType, content)
}
