package api

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
)

// A limited server answers 429 the given number of times before it answers the request.
type limited struct {
	times      int32
	retryAfter string
	asked      atomic.Int32
}

func (l *limited) RoundTrip(*http.Request) (*http.Response, error) {
	if l.asked.Add(1) > l.times {
		return reply(http.StatusOK, "application/json", `{"status": "ok", "version": "v", "user": "u"}`), nil
	}
	resp := reply(http.StatusTooManyRequests, ProblemMediaType,
		`{"type": "`+typeBase+`unavailable", "title": "t", "status": 429, "detail": "too often", "kind": "unavailable"}`)
	resp.Header.Set("Retry-After", l.retryAfter)
	return resp, nil
}

// A request answered with 429 is repeated at the time that the answer specifies, not earlier. If the wait would be too
// long, the client does not wait at all.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, after string
		times       int32
		asked       int32
		least, most time.Duration
		kind        corral.Kind
	}{
		{"once", "7", 1, 2, 7 * time.Second, 8 * time.Second, ""},
		{"twice", "3", 2, 3, 6 * time.Second, 7 * time.Second, ""},
		{"forever", "1", 100, 6, 5 * time.Second, 20 * time.Second, corral.Unavailable},
		{"without a time", "", 1, 2, 2 * time.Second, 2 * time.Second, ""},
		{"with a date", "Wed, 21 Oct 2026 07:28:00 GMT", 1, 2, 2 * time.Second, 2 * time.Second, ""},
		{"for an hour", "3600", 1, 1, 0, 0, corral.Unavailable},
		{"for a negative time", "-5", 1, 2, 2 * time.Second, 2 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := New("http://corrald.example")
				if err != nil {
					t.Fatal(err)
				}
				l := &limited{times: tt.times, retryAfter: tt.after}
				c.http.HTTPClient.Transport = l
				begun := time.Now()
				_, err = c.Health(t.Context())
				if took := time.Since(begun); took < tt.least || took > tt.most {
					t.Errorf("it took %v, want %v to %v", took, tt.least, tt.most)
				}
				if corral.KindOf(err) != tt.kind || l.asked.Load() != tt.asked {
					t.Errorf("asked %d times: %v", l.asked.Load(), err)
				}
			})
		})
	}
}

// reply returns an answer.
func reply(status int, media, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {media}},
		Body: io.NopCloser(strings.NewReader(body))}
}

// A client sends its token with each request, and no credentials without one.
func TestTokenIsSent(t *testing.T) {
	t.Parallel()
	text := NewTokenText()
	for _, token := range []string{text, ""} {
		c, err := Dial("https://corrald.example", Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c.http.HTTPClient.Transport = sees(func(r *http.Request) { got = r.Header.Values("Authorization") })
		if _, err := c.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		if token != "" && (len(got) != 1 || got[0] != "Bearer "+token) || token == "" && len(got) != 0 {
			t.Errorf("sent %q", got)
		}
	}
}

type sees func(*http.Request)

func (s sees) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return reply(http.StatusOK, "application/json", `{"status": "ok", "version": "v", "user": "u"}`), nil
}
