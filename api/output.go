package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

// An Output is the text that a run's tasks printed after a place: whole lines, or the rest of the output of a task that
// is over. It excludes output that the workflow redirects to a file of the run.
type Output struct {
	Pieces []OutputPiece `json:"pieces"`
	Next   OutputPlace   `json:"next"`
	Over   bool          `json:"over"` // the run is over, and all output was returned
}

// An OutputPiece is part of the output of one attempt at a task. Bytes that are not UTF-8 are replaced.
type OutputPiece struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Stream  string `json:"stream"` // stdout or stderr
	Text    string `json:"text"`
}

// An OutputPlace is a position in the output of a run. Its zero value is the beginning. corrald does not store places,
// so a place remains valid after a restart.
type OutputPlace struct {
	// Told has a bit for each task, in the run's order, whose output was returned completely.
	Told []byte       `json:"told,omitempty"`
	Open []OutputFile `json:"open,omitempty"` // tasks whose output was returned in part
}

// An OutputFile is a position in the output of an attempt.
type OutputFile struct {
	Index   int   `json:"index"` // of the task, from 0, in the run's order
	Attempt int   `json:"attempt"`
	Stdout  int64 `json:"stdout_bytes"`
	Stderr  int64 `json:"stderr_bytes"`
}

// RunOutput returns the output of a run's tasks after a place as soon as there is new output, but at the latest after
// wait.
func (c *Client) RunOutput(
	ctx context.Context, id corral.RunID, since OutputPlace, wait time.Duration,
) (Output, error) {
	body, err := json.Marshal(since)
	if err != nil {
		return Output{}, err // unreachable: every field can be encoded
	}
	return decode[Output](c.do(ctx, call{
		method: http.MethodPost, path: runPath(id) + "/output", body: body,
		query: url.Values{"timeout_s": {strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)}},
	}))
}
