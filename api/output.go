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

// An Output is what the tasks of a run have printed since a place: whole lines, or what is left of a task that is over.
// What a task's workflow has in a file of the run is not among it.
type Output struct {
	Pieces []OutputPiece `json:"pieces"`
	Next   OutputPlace   `json:"next"`
	Over   bool          `json:"over"` // the run is over, and nothing is left to tell
}

// An OutputPiece is a piece of what one attempt at a task has printed. What is not UTF-8 is replaced in it.
type OutputPiece struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Stream  string `json:"stream"` // stdout or stderr
	Text    string `json:"text"`
}

// An OutputPlace is how far the output of a run was told. Its zero value is the beginning. corrald keeps none: a place
// outlives it.
type OutputPlace struct {
	// Told has a bit for each task of which nothing is left to tell, in the run's order.
	Told []byte       `json:"told,omitempty"`
	Open []OutputFile `json:"open,omitempty"` // those of which something was told
}

// An OutputFile is how far the output of an attempt was told.
type OutputFile struct {
	Index   int   `json:"index"` // of the task, from 0, in the run's order
	Attempt int   `json:"attempt"`
	Stdout  int64 `json:"stdout_bytes"`
	Stderr  int64 `json:"stderr_bytes"`
}

// RunOutput returns what the tasks of a run have printed since a place, as soon as there is something, but after wait
// in any case.
func (c *Client) RunOutput(
	ctx context.Context, id corral.RunID, since OutputPlace, wait time.Duration,
) (Output, error) {
	body, err := json.Marshal(since)
	if err != nil {
		return Output{}, err // unreachable: there is nothing in it that JSON has not
	}
	return decode[Output](c.do(ctx, call{
		method: http.MethodPost, path: runPath(id) + "/output", body: body,
		query: url.Values{"timeout_s": {strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)}},
	}))
}
