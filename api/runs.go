package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

// runPath returns the path of a run; the paths of its parts begin with it.
func runPath(id corral.RunID) string { return fmt.Sprintf("/v1/runs/%d", id) }

// CreateRun submits a workflow to corrald, which then runs it on its own. If the document is not JSON, an Invalid error
// with the line is returned before any request is sent. An empty key is replaced by a random one.
func (c *Client) CreateRun(ctx context.Context, r NewRun, key string) (corral.Run, error) {
	if r.Open {
		return create[corral.Run](ctx, c, "/v1/runs", key, r)
	}
	body, err := encodeRun(r)
	if err != nil {
		return corral.Run{}, err
	}
	return change[corral.Run](ctx, c, call{method: http.MethodPost, path: "/v1/runs", key: key, body: body})
}

// placeholder represents the workflow in a request until encodeAround inserts it.
var placeholder = json.RawMessage("0")

// encodeAround encodes a request and replaces the placeholder by the document's unchanged bytes. encoding/json would
// put the document on one line, but corrald's messages about the document contain line numbers.
func encodeAround(request any, name string, document []byte) ([]byte, error) {
	if len(document) > MaxRunBody {
		return nil, corral.ErrorAt(corral.Invalid, name, "the workflow has %d bytes, but a request may have at "+
			"most %d: split it", len(document), MaxRunBody)
	}
	if err := checkJSON(name, document); err != nil {
		return nil, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	before, after, _ := bytes.Cut(body, []byte(`"workflow":0`))
	return bytes.Join([][]byte{before, []byte(`"workflow":`), document, after}, nil), nil
}

// checkJSON returns an error with the first line at which the document, from the file called name, is not JSON.
func checkJSON(name string, document []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(document, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(document[:min(int(syntax.Offset), len(document))], []byte("\n"))
		return corral.ErrorAt(corral.Invalid, fmt.Sprintf("%s:%d", name, line), "%w", err)
	}
	return err
}

// Runs lists runs, oldest first.
func (c *Client) Runs(ctx context.Context, f Filter) ([]corral.Run, error) {
	return list[corral.Run](ctx, c, "/v1/runs", f.query())
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, id corral.RunID) (corral.Run, error) {
	return get[corral.Run](ctx, c, runPath(id), nil)
}

// WaitRun returns the run once it is over, in any final state. After timeout (0: none) it returns the run's current
// state and an error of kind Timeout.
func (c *Client) WaitRun(ctx context.Context, id corral.RunID, timeout time.Duration) (corral.Run, error) {
	var over Until
	for _, s := range corral.RunStates {
		if s.Over() {
			over = append(over, string(s))
		}
	}
	return wait(ctx, c, runPath(id), waiting[corral.Run]{over, timeout, over.Run})
}

// CancelRun kills the run's tasks. Finished tasks stay finished, and the run may be resumed.
func (c *Client) CancelRun(ctx context.Context, id corral.RunID) (corral.Run, error) {
	return act[corral.Run](ctx, c, runPath(id)+"/cancel")
}

// ResumeRun continues a run that failed, stalled or was cancelled.
func (c *Client) ResumeRun(ctx context.Context, id corral.RunID) (corral.Run, error) {
	return act[corral.Run](ctx, c, runPath(id)+"/resume")
}

// RemoveRun hides the record of a run that is over; with purge it also deletes the run's directory and results.
func (c *Client) RemoveRun(ctx context.Context, id corral.RunID, purge bool) (corral.Run, error) {
	return remove[corral.Run](ctx, c, runPath(id), flag("purge", purge))
}

// RunHistory returns what happened to the run, oldest first.
func (c *Client) RunHistory(ctx context.Context, id corral.RunID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, runPath(id)+"/history", nil)
}

// RunTasks lists the run's tasks in the order of the workflow; states (none: all) restricts the list.
func (c *Client) RunTasks(ctx context.Context, id corral.RunID, states ...corral.TaskState) ([]TaskStatus, error) {
	q := url.Values{}
	for _, s := range states {
		q.Add("state", string(s))
	}
	return list[TaskStatus](ctx, c, runPath(id)+"/tasks", q)
}

// A DiskUse is the disk space that a run's directory uses on corrald's host.
type DiskUse struct {
	Files int64 `json:"files"` // with folders and links
	Bytes int64 `json:"bytes"` // of blocks, as counted by du
}

// RunDisk measures a run's directory. The measurement takes time because it examines every file in the directory.
func (c *Client) RunDisk(ctx context.Context, id corral.RunID) (DiskUse, error) {
	return get[DiskUse](ctx, c, runPath(id)+"/disk", nil)
}

// RunProfile returns the measurements of the run's finished tasks, in the format of package profile.
func (c *Client) RunProfile(ctx context.Context, id corral.RunID) ([]byte, error) {
	return c.do(ctx, call{method: http.MethodGet, path: runPath(id) + "/profile"})
}

// RunWorkflow returns the workflow of the run in WfFormat. Once the run is over, the document includes the measurements
// of its tasks.
func (c *Client) RunWorkflow(ctx context.Context, id corral.RunID) ([]byte, error) {
	return c.do(ctx, call{method: http.MethodGet, path: runPath(id) + "/workflow"})
}

// A LogPart selects a file of a task, and a part of it.
type LogPart struct {
	File  string // of the last execution: stdout, stderr or record.json; of its scripts: pre, post
	After int64  // bytes to skip at the beginning
	Last  int64  // maximum number of bytes from the end, regardless of After; 0: all

	// Wait is the time to wait for output beyond After while the task may still write output; 0: no wait.
	Wait time.Duration
}

// RunTaskLog returns a part of a file of a task. If the task has no such file, the error is NotFound.
func (c *Client) RunTaskLog(ctx context.Context, id corral.RunID, task string, part LogPart) ([]byte, error) {
	q := url.Values{"file": {part.File}}
	for name, n := range map[string]int64{"after": part.After, "last": part.Last} {
		if n > 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if part.Wait > 0 {
		q.Set("timeout_s", strconv.FormatFloat(part.Wait.Seconds(), 'f', -1, 64))
	}
	path := runPath(id) + "/tasks/" + url.PathEscape(task) + "/log"
	return c.do(ctx, call{method: http.MethodGet, path: path, query: q})
}

// RetryTasks retries failed tasks of a run, with all their retries; a run that is over continues.
func (c *Client) RetryTasks(ctx context.Context, id corral.RunID, tasks ...string) (corral.Run, error) {
	return c.askOfTasks(ctx, id, "retry", tasks)
}

// CancelTasks cancels tasks of an active run: running tasks are killed, and waiting tasks never start.
func (c *Client) CancelTasks(ctx context.Context, id corral.RunID, tasks ...string) (corral.Run, error) {
	return c.askOfTasks(ctx, id, "cancel", tasks)
}

// askOfTasks posts a verb that applies to the given tasks of a run.
func (c *Client) askOfTasks(ctx context.Context, id corral.RunID, what string, tasks []string) (corral.Run, error) {
	path := runPath(id) + "/tasks/" + what
	return create[corral.Run](ctx, c, path, "", TaskChoice{tasks})
}
