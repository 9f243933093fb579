package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
)

// taskHandlers answer requests about the tasks of runs, which package run manages: tasks follow from journals that it
// writes.
type taskHandlers struct {
	rest.Resource[corral.Run]
	runs *run.Manager
}

// newTasks returns handlers that find runs with the resource.
func newTasks(runs *run.Manager, of rest.Resource[corral.Run]) *taskHandlers {
	return &taskHandlers{Resource: of, runs: runs}
}

// routes returns the routes below /v1/runs/:id.
func (h *taskHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/runs/:id/tasks", h.list, "after", "limit", "state", "since", "task", "wait", "timeout_s"),
		rest.Post("/v1/runs/:id/tasks", h.add).WithBody(api.MaxTaskBody).Ahead(h.Adapter, h.ahead),
		rest.Post("/v1/runs/:id/tasks/retry", h.ask((*run.Manager).RetryTasks)),
		rest.Post("/v1/runs/:id/tasks/cancel", h.ask((*run.Manager).CancelTasks)),
		rest.Get("/v1/runs/:id/tasks/:task/log", h.log, "file", "after", "last", "timeout_s"),
		rest.Post("/v1/runs/:id/output", h.output, "timeout_s"),
	}
}

// ahead refuses tasks for a run that does not exist, before the tasks are read.
func (h *taskHandlers) ahead(c *rest.Call, _ rest.Head) error {
	_, err := h.Load(c.Context(), c)
	return err
}

// add adds tasks to an open run. They are in its journal, with the request's key, before the answer is stored: a
// repetition gets the same numbers, regardless of when corrald died.
func (h *taskHandlers) add(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewTask) (rest.Step[api.AddedTasks], error) {
		var none rest.Step[api.AddedTasks]
		r, err := h.Load(ctx, c)
		if err == nil {
			err = request.CheckNewTask(in)
		}
		if err != nil {
			return none, err
		}
		// The digest distinguishes a repetition from another request with the same key. It is computed from the
		// parsed request, so that white space does not matter.
		text, err := json.Marshal(in)
		if err != nil {
			return none, err // unreachable: it was JSON
		}
		digest := sha256.Sum256(text)
		once := run.Once{Key: c.Key(), Request: hex.EncodeToString(digest[:16])}
		added, err := rest.Until(ctx, h.Adapter, func(ctx context.Context) (api.AddedTasks, error) {
			return run.AddTask(ctx, h.runs, r.ID, in, once)
		})
		if err != nil {
			return none, err
		}
		return rest.Only(func(*store.Tx) (api.AddedTasks, error) { return added, nil })
	})
}

// ask handles a request about single tasks that is harmless to repeat.
func (h *taskHandlers) ask(
	what func(m *run.Manager, ctx context.Context, actor string, id corral.RunID, tasks []string) (corral.Run, error),
) func(*rest.Call) error {
	return func(c *rest.Call) error {
		return rest.Change(h.Adapter, c, func(ctx context.Context, in api.TaskChoice) (rest.Step[corral.Run], error) {
			r, err := h.Load(ctx, c)
			if err == nil {
				err = request.CheckTaskChoice(in)
			}
			if err == nil {
				r, err = rest.Until(ctx, h.Adapter, func(ctx context.Context) (corral.Run, error) {
					return what(h.runs, ctx, c.Actor(), r.ID, in.Tasks)
				})
			}
			if err != nil {
				return rest.Step[corral.Run]{}, err
			}
			return rest.Only(func(*store.Tx) (corral.Run, error) { return r, nil })
		})
	}
}

// list answers with a page of a run's tasks; after is the position of a task in the run, counted from 1. Each page of a
// finished run may require reading the whole journal, so the limit of a page is higher than for other lists.
func (h *taskHandlers) list(c *rest.Call) error {
	var choice run.Choice
	choice.After, choice.Limit = c.Query.Page(api.MaxTasks)
	choice.States, choice.Since = request.States(c.Query, corral.TaskStates), c.Query.Instant("since")
	for _, r := range c.Query.Ranges("task") {
		choice.Numbers = append(choice.Numbers, run.Numbers{First: r[0], Last: r[1]})
	}
	if err := c.Query.Err(); err != nil {
		return err
	}
	r, err := h.Load(c.Context(), c) // package run, which has the tasks, does not check their owner
	if err != nil {
		return err
	}
	id := r.ID
	if c.Query.Has("wait") {
		err = h.await(c, id, choice)
	}
	if err != nil {
		return rest.Missing("id", err)
	}
	tasks, next, err := run.TaskPage(c.Context(), h.runs, id, choice)
	if err != nil {
		return rest.Missing("id", err)
	}
	texts := make([]api.TaskText, len(tasks))
	for i := range tasks {
		texts[i] = api.TextOf(tasks[i])
	}
	if next == 0 {
		return c.JSON(rest.Whole(texts, ""))
	}
	return c.JSON(rest.Whole(texts, strconv.FormatInt(next, 10)))
}

// await waits until the tasks with the given numbers have ended, or the time is up.
func (h *taskHandlers) await(c *rest.Call, id corral.RunID, choice run.Choice) error {
	timeout := c.Query.Timeout()
	c.Query.OneOf("wait", api.UntilEnded)
	if err := c.Query.Err(); err != nil {
		return err
	}
	if len(choice.Numbers) == 0 {
		return corral.ErrorAt(corral.Invalid, "wait", "name the tasks with task=NUMBERS")
	}
	return h.UntilStop(c.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := run.AwaitTasks(ctx, h.runs, id, choice); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	})
}

// log answers with a file from a task's last execution, or its scripts, in the run's directory on corrald's host.
func (h *taskHandlers) log(c *rest.Call) error {
	after, last := c.Query.Number("after"), c.Query.Number("last")
	f := run.File{Task: c.Param("task"), Name: c.Query.OneOf("file", run.Logs()...)}
	r, err := h.While(c, func(ctx context.Context, load func(context.Context) (corral.Run, error)) error {
		return run.Await(ctx, outputSource{h.runs}, load, f, after)
	})
	if err != nil {
		return err
	}
	content, err := h.runs.Log(c.Context(), r.ID, f)
	if err != nil {
		return err
	}
	defer content.Close()
	return c.FilePart(content, after, last)
}

// output answers with new output of a run's tasks, once there is any.
func (h *taskHandlers) output(c *rest.Call) error {
	return rest.Ask(h.Adapter, c, func(_ context.Context, since api.OutputPlace) (out api.Output, err error) {
		_, err = h.While(c, func(ctx context.Context, load func(context.Context) (corral.Run, error)) (err error) {
			out, err = run.Next(ctx, outputSource{h.runs}, load, since)
			return err
		})
		return out, err
	})
}

// An outputSource gives the functions for the output of runs access to the runs.
type outputSource struct{ *run.Manager }

// Tasks lists all tasks of a run.
func (s outputSource) Tasks(ctx context.Context, id corral.RunID) ([]*api.TaskStatus, error) {
	tasks, _, err := run.TaskPage(ctx, s.Manager, id, run.Choice{Limit: math.MaxInt})
	return tasks, err
}
