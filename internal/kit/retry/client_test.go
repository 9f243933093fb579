package retry_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/corral-pilot/corral/internal/kit/retry"
)

// A gone represents a server that does not answer before a given time.
type gone struct {
	until time.Time
	err   error
}

func (g gone) RoundTrip(*http.Request) (*http.Response, error) {
	if time.Now().Before(g.until) {
		return nil, g.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A first request fails soon if there is no server, and immediately if there is not even a socket. A patient request
// outlasts a restart, and fails after a minute without a server.
func TestPatientRequestsOutlastSilence(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for _, tt := range []struct {
		name    string
		patient bool
		silence time.Duration
		err     error
		ok      bool
		most    time.Duration
	}{
		{"a blink", false, time.Second, refused, true, 3 * time.Second},
		{"nobody", false, time.Hour, refused, false, 8 * time.Second},
		{"no socket", false, time.Hour, fs.ErrNotExist, false, 0},
		{"a restart", true, 40 * time.Second, refused, true, 43 * time.Second},
		{"a restart in order", true, 40 * time.Second, fs.ErrNotExist, true, 43 * time.Second},
		{"none after all", true, time.Hour, refused, false, 63 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := retry.NewClient(&http.Transport{})
				begun := time.Now()
				c.HTTPClient.Transport = gone{begun.Add(tt.silence), tt.err}
				ctx := t.Context()
				if tt.patient {
					ctx = retry.Patiently(ctx)
				}
				err := ask(ctx, c)
				if took := time.Since(begun); (err == nil) != tt.ok || took > tt.most {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

func ask(ctx context.Context, c *retryablehttp.Client) error {
	ctx, _ = retry.Track(ctx)
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, "http://corrald.example", nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}
