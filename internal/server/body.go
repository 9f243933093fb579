package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// bodyTimeout is Config.BodyTimeout of who sets none.
const bodyTimeout = 30 * time.Second

// bound bounds the time in which the body of a request may come, whoever reads it: what a handler leaves of it,
// net/http reads before it answers. The bound ends with the body: from then on net/http only looks whether the peer
// is still there, and the answer may take its time.
func bound(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	length := r.ContentLength
	if length == 0 {
		return
	}
	if length < 0 || length > api.MaxRunBody { // it does not say, or will not be read that far
		length = api.MaxRunBody
	}
	timeout = orDefault(timeout, bodyTimeout) + time.Duration(length>>20)*time.Second
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) // in some tests there is no connection
}

// bodyLimit is how long the request's body may be.
func bodyLimit(c echo.Context) int64 {
	if c.Path() == "/v1/runs" {
		return api.MaxRunBody
	}
	return api.MaxBody
}

// readBody reads a request's body to its end.
func readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, bodyLimit(c)))
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooLong):
		return nil, withStatus(http.StatusRequestEntityTooLarge, corral.ErrorAt(corral.Invalid, "body",
			"longer than %d bytes", tooLong.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, withStatus(http.StatusRequestTimeout, corral.ErrorAt(corral.Unavailable, "body",
			"only %s arrived in time; nothing was done: send the request again", part(body, r.ContentLength)))
	}
	return nil, withStatus(http.StatusBadRequest, corral.ErrorAt(corral.Invalid, "body",
		"it was cut off after %s (%w); nothing was done: send the request again", part(body, r.ContentLength), err))
}

// part says how much of a body there is.
func part(body []byte, length int64) string {
	if length < 0 {
		return fmt.Sprintf("%d bytes", len(body))
	}
	return fmt.Sprintf("%d of %d bytes", len(body), length)
}

// none is the In of a change whose request has no body.
type none struct{}

// decodeBody reads a request's body and decodes it into in, strictly.
func decodeBody[In any](c echo.Context, in *In) ([]byte, error) {
	body, err := readBody(c)
	if err != nil {
		return nil, err
	}
	if _, bare := any(in).(*none); bare {
		if len(body) > 0 {
			return nil, corral.ErrorAt(corral.Invalid, "body", "this request takes none")
		}
		return nil, nil
	}
	if q := queryOf(c); q.err != nil { // a request with a body has no parameters
		return nil, q.err
	}
	// Browsers send other types across sites without asking first; this one they do not.
	media, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if media != echo.MIMEApplicationJSON {
		return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType, "want Content-Type: application/json")
	}
	return body, strictly(body, in)
}
