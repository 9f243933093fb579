package api

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
)

// An open run has no workflow: tasks are added while it runs. It ends when it has been closed and all its tasks are
// over. Its tasks are numbered from 1 in the order in which they were added, without gaps. A task's id is its number.

// Limits of the additions to an open run.
const (
	MaxTaskBody   = 8 << 20 // bytes of a request that adds tasks, including the note
	MaxNote       = 1 << 20 // bytes
	MaxWords      = 128 << 10
	MaxAttributes = 32 << 10
	MaxArray      = 100_000 // tasks that one request adds
	MaxAfter      = 10_000  // conditions in one request
	MaxPriority   = 1 << 30 // of a task; the minimum is its negative
	MaxGrace      = 600     // seconds
	MaxOpenTasks  = 999_999 // of a run: their numbers have six digits
)

// NewTask requests one task of an open run, or an array of identical tasks.
type NewTask struct {
	Name        string   `json:"name,omitempty"`        // for people; need not be unique
	Argv        []string `json:"argv"`                  // the first may be corral.PilotProgram
	Directory   string   `json:"directory,omitempty"`   // working directory; empty: a directory of its own
	Environment []string `json:"environment,omitempty"` // KEY=VALUE
	corral.Resources
	TaskTimes
	Priority int `json:"priority,omitempty"` // the task with the highest priority starts first
	Retries  int `json:"retries,omitempty"`

	// Requeue restarts the task if its worker is lost or has to leave. Otherwise the task fails with the cause
	// corral.CauseLostWorker.
	Requeue bool `json:"requeue,omitempty"`

	// Note is a text, such as a script, for the task. It is in the file named by corral.NoteVariable.
	Note string `json:"note,omitempty"`

	Attributes map[string]string `json:"attributes,omitempty"` // stored and listed, not interpreted
	After      []Condition       `json:"after,omitempty"`      // conditions that must all hold before it begins
	Elements   int               `json:"elements,omitempty"`   // size of the array; 0: one task
	AtOnce     int               `json:"at_once,omitempty"`    // maximum of the array's concurrent tasks; 0: no limit
}

// TaskTimes contains the estimate and the limits of a task's duration.
type TaskTimes struct {
	Estimate  corral.Seconds `json:"estimate_s,omitempty"`   // 0: the run's default runtime, or the limit if less
	TimeLimit corral.Seconds `json:"time_limit_s,omitempty"` // 0: none
	Grace     corral.Seconds `json:"grace_s,omitempty"`      // from SIGTERM to SIGKILL; 0: two seconds
}

// A Condition delays a task until another task of its run reaches a given point.
type Condition struct {
	Task int  `json:"task"` // its number
	When When `json:"when"`
}

// A When is a point in a task's life. A task that is cancelled before it begins counts as started, ended and failed.
type When string

const (
	WhenStarted   When = "started"
	WhenEnded     When = "ended"
	WhenSucceeded When = "succeeded"
	WhenFailed    When = "failed" // also if cancelled or never begun
)

// Whens lists all points.
var Whens = []When{WhenStarted, WhenEnded, WhenSucceeded, WhenFailed}

// AddedTasks are the numbers of the tasks that a request added: First to First+Count-1.
type AddedTasks struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Numbers lists the numbers.
func (a AddedTasks) Numbers() []int {
	numbers := make([]int, a.Count)
	for i := range numbers {
		numbers[i] = a.First + i
	}
	return numbers
}

// AddTask adds a task or an array to an open run. Repeating a key returns the same numbers; an empty key is replaced by
// a random one. A task that requests no cpus is given one.
func (c *Client) AddTask(ctx context.Context, id corral.RunID, t NewTask, key string) (AddedTasks, error) {
	t.CPUs = max(1, t.CPUs)
	if err := t.text(); err != nil {
		return AddedTasks{}, err
	}
	return create[AddedTasks](ctx, c, runPath(id)+"/tasks", key, t)
}

// text refuses strings that are not UTF-8, because JSON would replace their bytes.
func (t *NewTask) text() error {
	for place, words := range map[string][]string{
		"argv": t.Argv, "environment": t.Environment, "note": {t.Note}, "directory": {t.Directory}, "name": {t.Name},
	} {
		for _, word := range words {
			if !utf8.ValidString(word) {
				return corral.ErrorAt(corral.Invalid, place, "%.40q is not UTF-8, as a request must be", word)
			}
		}
	}
	return nil
}

// CloseRun closes an open run to further tasks. The run ends when its tasks are over.
func (c *Client) CloseRun(ctx context.Context, id corral.RunID) (corral.Run, error) {
	return act[corral.Run](ctx, c, runPath(id)+"/close")
}

// A TaskQuery selects tasks of a run; an empty field selects all.
type TaskQuery struct {
	Numbers []int // of an open run
	States  []corral.TaskState
	Since   time.Time // excludes tasks that were done or had failed before
}

// values returns the query as parameters of a request.
func (q TaskQuery) values() url.Values {
	v := url.Values{}
	for _, s := range q.States {
		v.Add("state", string(s))
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if len(q.Numbers) > 0 {
		v.Set("task", Ranges(q.Numbers))
	}
	return v
}

// Ranges formats numbers as in "3,7-9".
func Ranges(numbers []int) string {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	var b strings.Builder
	for len(sorted) > 0 {
		first, last := sorted[0], sorted[0]
		for len(sorted) > 0 && sorted[0] <= last+1 {
			last, sorted = sorted[0], sorted[1:]
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteString("-" + strconv.Itoa(last))
		}
	}
	return b.String()
}

// mostNumbers is the maximum number of task numbers in a request: its target may have some 64 KiB.
const mostNumbers = 4000

// QueryTasks lists the tasks of a run selected by q, in the order of their numbers.
func (c *Client) QueryTasks(ctx context.Context, id corral.RunID, q TaskQuery) (all []TaskStatus, err error) {
	if len(q.Numbers) <= mostNumbers {
		return list[TaskStatus](ctx, c, runPath(id)+"/tasks", q.values())
	}
	for part := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(q.Numbers))), mostNumbers) {
		tasks, err := list[TaskStatus](ctx, c, runPath(id)+"/tasks", TaskQuery{part, q.States, q.Since}.values())
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}

// WaitTasks returns tasks of an open run once all of them are over. After timeout (0: none) it returns their current
// states and an error of kind Timeout.
func (c *Client) WaitTasks(ctx context.Context, id corral.RunID, numbers []int,
	timeout time.Duration) ([]TaskStatus, error) {
	end := time.Now().Add(timeout)
	for {
		left := MaxWait
		if timeout != 0 {
			left = max(0, min(left, time.Until(end)))
		}
		q := TaskQuery{Numbers: numbers}.values()
		q.Set("wait", UntilEnded)
		q.Set("timeout_s", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
		tasks, err := list[TaskStatus](ctx, c, runPath(id)+"/tasks", q)
		if err != nil {
			return nil, err
		}
		open := 0
		for i := range tasks {
			if !tasks[i].State.Over() {
				open++
			}
		}
		switch {
		case open == 0:
			return tasks, nil
		case timeout != 0 && !time.Now().Before(end):
			return tasks, corral.Errorf(corral.Timeout, "%d of %d tasks of run %d are not over after %s",
				open, len(tasks), id, rounded(timeout))
		}
	}
}

// UntilEnded is the value of `wait` for tasks: all requested tasks are over.
const UntilEnded = "ended"
