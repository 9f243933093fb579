package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

func glideinPath(id corral.GlideinID) string { return fmt.Sprintf("/v1/glideins/%d", id) }

// CreateGlidein requests workers. It returns once the request is recorded; WaitGlidein waits for the workers. An empty
// key is replaced by a random one.
func (c *Client) CreateGlidein(ctx context.Context, g NewGlidein, key string) (corral.Glidein, error) {
	return create[corral.Glidein](ctx, c, "/v1/glideins", key, g)
}

// Glideins lists glideins, oldest first.
func (c *Client) Glideins(ctx context.Context, f Filter) ([]corral.Glidein, error) {
	return list[corral.Glidein](ctx, c, "/v1/glideins", f.query())
}

// Glidein returns a glidein with its attempts and its present workers.
func (c *Client) Glidein(ctx context.Context, id corral.GlideinID) (corral.Glidein, error) {
	return get[corral.Glidein](ctx, c, glideinPath(id), nil)
}

// WaitGlidein returns the glidein once it meets one of the conditions in until, a comma-separated list of states and
// UntilWorkers. If the glidein ends before that, the error has kind Failed; after timeout (0: none), kind Timeout. The
// glidein is returned with such an error.
func (c *Client) WaitGlidein(ctx context.Context, id corral.GlideinID, until string,
	timeout time.Duration) (corral.Glidein, error) {
	u, err := ParseUntilGlidein(until)
	if err != nil {
		return corral.Glidein{}, err
	}
	return wait(ctx, c, glideinPath(id), waiting[corral.Glidein]{u, timeout, u.Glidein})
}

// RemoveGlidein requests the end of a glidein. Its workers finish their running tasks; if now is true, they abort them.
// Repeating the request is harmless.
func (c *Client) RemoveGlidein(ctx context.Context, id corral.GlideinID, now bool) (corral.Glidein, error) {
	return remove[corral.Glidein](ctx, c, glideinPath(id), flag("now", now))
}

// GlideinHistory returns the events of the glidein and its attempts, oldest first.
func (c *Client) GlideinHistory(ctx context.Context, id corral.GlideinID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, glideinPath(id)+"/history", nil)
}

// GlideinTimeline returns the timeline's events: its site's setup, its attempts, its site's cleanup.
func (c *Client) GlideinTimeline(ctx context.Context, id corral.GlideinID) ([]corral.TimelineEvent, error) {
	return list[corral.TimelineEvent](ctx, c, glideinPath(id)+"/timeline", nil)
}

// GlideinLog returns a file written by an attempt: stdout, stderr or report.json. Attempt 0 is the last one.
func (c *Client) GlideinLog(ctx context.Context, id corral.GlideinID, attempt int, file string) ([]byte, error) {
	q := url.Values{"file": {file}}
	if attempt != 0 {
		q.Set("attempt", strconv.Itoa(attempt))
	}
	return c.do(ctx, call{method: http.MethodGet, path: glideinPath(id) + "/log", query: q})
}
