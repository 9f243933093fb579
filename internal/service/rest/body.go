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
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A Pace is the minimum speed of a request's body. After the grace period, the average rate must be at least the
// floor, and in any grace period at least one byte must arrive: the server does not wait for a stalled body, regardless
// of its earlier speed.
type Pace struct {
	Grace time.Duration // 0: DefaultPace's value
	Floor int64         // bytes per second; 0: DefaultPace's value
}

// DefaultPace is 1 Mbit/s: 64 MiB may take eight and a half minutes. A body that arrives within the grace period is
// never too slow.
var DefaultPace = Pace{Grace: 10 * time.Second, Floor: 128 << 10}

// until returns the deadline for the next data of a body, given the number of bytes that have arrived and the time at
// which the last of them arrived.
func (p Pace) until(begun, last time.Time, arrived int64) time.Time {
	average := begun.Add(p.Grace + time.Duration(float64(arrived)/float64(p.Floor)*float64(time.Second)))
	if stopped := last.Add(p.Grace); stopped.Before(average) {
		return stopped
	}
	return average
}

// bound enforces the pace on a request's body, even while net/http reads the part that a handler has left unread.
func (p Pace) bound(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	p.Grace, p.Floor = cmp.Or(p.Grace, DefaultPace.Grace), cmp.Or(p.Floor, DefaultPace.Floor)
	now := time.Now()
	b := &paced{ReadCloser: r.Body, pace: p, control: http.NewResponseController(w), begun: now, last: now}
	b.await()
	r.Body = b
}

// paced is a body with a minimum pace. The limit ends with the body: after that net/http only checks whether the peer
// is still connected, and the answer may take any time.
type paced struct {
	io.ReadCloser
	pace    Pace
	control *http.ResponseController
	begun   time.Time
	last    time.Time // time of the last data
	arrived int64     // bytes
}

func (b *paced) await() {
	// It fails only in tests without a connection.
	_ = b.control.SetReadDeadline(b.pace.until(b.begun, b.last, b.arrived))
}

func (b *paced) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.arrived += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // as in await
	case n > 0:
		b.last = time.Now()
		b.await()
	}
	return n, err
}

// tooSlow returns the error for a body that arrives more slowly than its pace.
func (p Pace) tooSlow(body []byte, length int64) error {
	return WithStatus(http.StatusRequestTimeout, corral.ErrorAt(corral.Unavailable, "body",
		"only %s arrived in time: after %s at least %d KiB have to arrive each second; "+
			"nothing was done: send the request again",
		part(body, length), p.Grace, p.Floor>>10))
}

// headSize is the size of the part of a body that is examined before the rest is read.
const headSize = 64 << 10

// readBody reads a request's body to its end, unless it is refused because of its length or its head.
func readBody(c *Call) ([]byte, error) {
	r := c.echo.Request()
	if r.ContentLength > c.maxBody {
		return nil, tooLong(c.maxBody)
	}
	from := http.MaxBytesReader(c.echo.Response(), r.Body, c.maxBody)
	body, err := fill(from, nil, headSize, r.ContentLength)
	if err == nil && c.ahead != nil {
		if err := c.ahead(c, headOf(body)); err != nil {
			return nil, err
		}
	}
	if err == nil {
		body, err = fill(from, body, c.maxBody+1, r.ContentLength)
	}
	return body, c.bodyError(body, err)
}

// fill reads until the body has most bytes; it returns io.EOF if the body ends before that. A body of known length is
// copied only as far as necessary: the buffers that io.ReadAll leaves behind for a large body amount to several times
// its size.
func fill(from io.Reader, body []byte, most, length int64) ([]byte, error) {
	for int64(len(body)) < most {
		if len(body) == cap(body) {
			size := max(int64(2*cap(body)), 512)
			if length > 0 {
				size = min(size, length+1) // one more for the read that finds the end
			}
			grown := make([]byte, len(body), max(size, int64(len(body))+1))
			copy(grown, body)
			body = grown
		}
		room := body[len(body):cap(body)]
		n, err := from.Read(room[:min(int64(len(room)), most-int64(len(body)))])
		body = body[:len(body)+n]
		if err != nil {
			return body, err
		}
	}
	return body, nil
}

func tooLong(most int64) error {
	return WithStatus(http.StatusRequestEntityTooLarge,
		corral.ErrorAt(corral.Invalid, "body", "longer than %d bytes", most))
}

// bodyError returns the error for a body whose reading ended with err.
func (c *Call) bodyError(body []byte, err error) error {
	r := c.echo.Request()
	var long *http.MaxBytesError
	var many *access.TooMany
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &long):
		return tooLong(long.Limit)
	case errors.As(err, &many):
		return many
	case errors.Is(err, os.ErrDeadlineExceeded):
		pace := DefaultPace
		if b, ok := r.Body.(*paced); ok {
			pace = b.pace
		}
		return pace.tooSlow(body, r.ContentLength)
	}
	return WithStatus(http.StatusBadRequest, corral.ErrorAt(corral.Invalid, "body",
		"it was cut off after %s (%w); nothing was done: send the request again", part(body, r.ContentLength), err))
}

// part describes how much of a body has arrived.
func part(body []byte, length int64) string {
	if length < 0 {
		return fmt.Sprintf("%d bytes", len(body))
	}
	return fmt.Sprintf("%d of %d bytes", len(body), length)
}

// None is the In of a Change whose requests have no body.
type None struct{}

// Decode reads a request's body and decodes it into in, strictly. It also returns the body.
func Decode[In any](c *Call, in *In) ([]byte, error) {
	_, bare := any(in).(*None)
	// A page of another site can make a browser send a form or plain text here, but not this media type.
	media, _, _ := mime.ParseMediaType(c.echo.Request().Header.Get(echo.HeaderContentType))
	if !bare && media != echo.MIMEApplicationJSON {
		return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType, "want Content-Type: application/json")
	}
	body, err := readBody(c)
	switch {
	case err != nil:
		return nil, err
	case bare && len(body) > 0:
		return nil, corral.ErrorAt(corral.Invalid, "body", "this request takes none")
	case bare:
		return nil, nil
	}
	return body, request.Decode(body, in)
}
