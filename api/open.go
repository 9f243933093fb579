package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
)

// An open run has no workflow: tasks are added to it while it goes on, and it ends when it is closed and they are over.
// Its tasks have numbers, from 1 in the order in which they were added, without gaps. A task's id is its number.

// Limits of what is added to an open run.
const (
	MaxTaskBody   = 8 << 20 // bytes of a request that adds tasks: the note is in it
	MaxNote       = 1 << 20 // bytes
	MaxWords      = 128 << 10
	MaxAttributes = 32 << 10
	MaxArray      = 100_000 // tasks that one request adds
	MaxAfter      = 10_000  // waits in one request
	MaxPriority   = 1 << 30 // of a task; the lowest is as far below 0
	MaxGrace      = 600     // seconds
	MaxOpenTasks  = 999_999 // of a run: their numbers have six digits
)

// NewTask asks for one task of an open run, or for an array of tasks that are alike.
type NewTask struct {
	Name        string   `json:"name,omitempty"`        // what people call it; need not be unique
	Argv        []string `json:"argv"`                  // the first may be corral.PilotProgram
	Directory   string   `json:"directory,omitempty"`   // where it runs; empty: in a directory of its own
	Environment []string `json:"environment,omitempty"` // KEY=VALUE
	corral.Resources
	TaskTimes
	Priority int `json:"priority,omitempty"` // of what could start, the highest does
	Retries  int `json:"retries,omitempty"`

	// Requeue has it begun again when its worker is lost or has to leave; without it, it then fails with the cause
	// corral.CauseLostWorker.
	Requeue bool `json:"requeue,omitempty"`

	// Note is a text, a script say, that the task finds in the file which corral.NoteVariable names.
	Note string `json:"note,omitempty"`

	Attributes map[string]string `json:"attributes,omitempty"` // kept and listed, not interpreted
	After      []Wait            `json:"after,omitempty"`      // all of them must hold before it begins
	Elements   int               `json:"elements,omitempty"`   // 0: one task; else an array of so many
	AtOnce     int               `json:"at_once,omitempty"`    // so many of the array run at a time; 0: any number
}

// TaskTimes say how long a task may take.
type TaskTimes struct {
	Estimate  corral.Seconds `json:"estimate_s,omitempty"`   // 0: the run's default runtime, or the limit if less
	TimeLimit corral.Seconds `json:"time_limit_s,omitempty"` // 0: none
	Grace     corral.Seconds `json:"grace_s,omitempty"`      // from SIGTERM to SIGKILL, to end in; 0: two seconds
}

// A Wait is what a task waits for: that another task of its run gets so far.
type Wait struct {
	Task int  `json:"task"` // its number
	When When `json:"when"`
}

// A When says how far a task is to get. One that is cancelled before it begins counts as started, ended and failed.
type When string

const (
	WhenStarted   When = "started"
	WhenEnded     When = "ended"
	WhenSucceeded When = "succeeded"
	WhenFailed    When = "failed" // also cancelled, or never begun
)

// Whens lists all of them.
var Whens = []When{WhenStarted, WhenEnded, WhenSucceeded, WhenFailed}

// AddedTasks are the numbers of the tasks that a request has added: First to First+Count-1.
type AddedTasks struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Numbers lists them.
func (a AddedTasks) Numbers() []int {
	numbers := make([]int, a.Count)
	for i := range numbers {
		numbers[i] = a.First + i
	}
	return numbers
}

// AddTask adds a task, or an array, to an open run. The same key gives the same numbers; an empty one is replaced by a
// random one. A task that says nothing of cpus has one.
func (c *Client) AddTask(ctx context.Context, id corral.RunID, t NewTask, key string) (AddedTasks, error) {
	t.CPUs = max(1, t.CPUs)
	if err := t.text(); err != nil {
		return AddedTasks{}, err
	}
	return create[AddedTasks](ctx, c, runPath(id)+"/tasks", key, t)
}

// text refuses what JSON cannot carry: bytes that are no UTF-8, in place of which others would arrive.
func (t *NewTask) text() error {
	for place, words := range map[string][]string{
		"argv": t.Argv, "environment": t.Environment, "note": {t.Note}, "directory": {t.Directory}, "name": {t.Name},
	} {
		for _, word := range words {
			if !utf8.ValidString(word) {
				return corral.ErrorAt(corral.Invalid, place, "%.40q is not UTF-8, which a request is written in", word)
			}
		}
	}
	return nil
}

// CloseRun lets no more tasks be added to an open run: it ends when those that it has are over.
func (c *Client) CloseRun(ctx context.Context, id corral.RunID) (corral.Run, error) {
	return act[corral.Run](ctx, c, runPath(id)+"/close")
}

// A TaskQuery selects tasks of a run; what is empty selects all.
type TaskQuery struct {
	Numbers []int // of an open run
	States  []corral.TaskState
	Since   time.Time // not those that were done, or had failed, before
}

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

// Ranges writes numbers as in "3,7-9".
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

// mostNumbers is how many numbers a request names at most: they stand in its target, which has some 64 KiB.
const mostNumbers = 4000

// QueryTasks lists the tasks of a run that q selects, in the order of their numbers.
func (c *Client) QueryTasks(ctx context.Context, id corral.RunID, q TaskQuery) (all []Task, err error) {
	if len(q.Numbers) <= mostNumbers {
		return list[Task](ctx, c, runPath(id)+"/tasks", q.values())
	}
	for part := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(q.Numbers))), mostNumbers) {
		tasks, err := list[Task](ctx, c, runPath(id)+"/tasks", TaskQuery{part, q.States, q.Since}.values())
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}

// WaitTasks returns tasks of an open run once all of them are over. When timeout (0: none) is over before, it returns
// them as they are and an error of kind Timeout.
func (c *Client) WaitTasks(ctx context.Context, id corral.RunID, numbers []int, timeout time.Duration) ([]Task, error) {
	end := time.Now().Add(timeout)
	for {
		left := MaxWait
		if timeout != 0 {
			left = max(0, min(left, time.Until(end)))
		}
		q := TaskQuery{Numbers: numbers}.values()
		q.Set("wait", UntilEnded)
		q.Set("timeout_s", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
		tasks, err := list[Task](ctx, c, runPath(id)+"/tasks", q)
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

// UntilEnded is what `wait` takes of tasks: that all which are asked for are over.
const UntilEnded = "ended"

// openRun is a request for an open run, which has no document.
func openRun(ctx context.Context, c *Client, r NewRun, key string) (corral.Run, error) {
	return send[corral.Run](ctx, c, call{method: http.MethodPost, path: "/v1/runs", key: key}, r)
}
