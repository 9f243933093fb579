package rest

import (
	"cmp"
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
	"github.com/corral-pilot/corral/internal/request"
)

// bodyTimeout is how long a body may take where nothing else is said.
const bodyTimeout = 30 * time.Second

// bound bounds the time in which the body of a request may arrive, whoever reads it: what a handler leaves of a body,
// net/http reads before it answers. The bound ends with the body. From then on net/http only looks whether the peer is
// still there, and the answer may take its time.
func bound(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	length := r.ContentLength
	if length == 0 {
		return
	}
	if length < 0 || length > api.MaxRunBody { // it does not say, or will not be read that far
		length = api.MaxRunBody
	}
	timeout = cmp.Or(timeout, bodyTimeout) + time.Duration(length>>20)*time.Second
	// It fails only in tests without a connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
}

// readBody reads a request's body to its end.
func readBody(c *Call) ([]byte, error) {
	r := c.echo.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.echo.Response(), r.Body, c.maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooLong):
		return nil, WithStatus(http.StatusRequestEntityTooLarge, corral.ErrorAt(corral.Invalid, "body",
			"longer than %d bytes", tooLong.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, WithStatus(http.StatusRequestTimeout, corral.ErrorAt(corral.Unavailable, "body",
			"only %s arrived in time; nothing was done: send the request again", part(body, r.ContentLength)))
	}
	return nil, WithStatus(http.StatusBadRequest, corral.ErrorAt(corral.Invalid, "body",
		"it was cut off after %s (%w); nothing was done: send the request again", part(body, r.ContentLength), err))
}

// part says how much of a body there is.
func part(body []byte, length int64) string {
	if length < 0 {
		return fmt.Sprintf("%d bytes", len(body))
	}
	return fmt.Sprintf("%d of %d bytes", len(body), length)
}

// None is the In of a Change whose request has no body.
type None struct{}

// Decode reads a request's body and decodes it into in, strictly. It also returns the body.
func Decode[In any](c *Call, in *In) ([]byte, error) {
	body, err := readBody(c)
	if err != nil {
		return nil, err
	}
	if _, bare := any(in).(*None); bare {
		if len(body) > 0 {
			return nil, corral.ErrorAt(corral.Invalid, "body", "this request takes none")
		}
		return nil, nil
	}
	// A page of another site can make a browser send a form or plain text here, but not this type.
	media, _, _ := mime.ParseMediaType(c.echo.Request().Header.Get(echo.HeaderContentType))
	if media != echo.MIMEApplicationJSON {
		return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType, "want Content-Type: application/json")
	}
	return body, request.Decode(body, in)
}
