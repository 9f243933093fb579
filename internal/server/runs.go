package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/run"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) listRuns(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit", "label", "cluster", "state")
	f := store.RunFilter{Filter: q.filter(), Labels: q.labels(), States: states(q, corral.RunStates)}
	if q.err != nil {
		return q.err
	}
	limit := f.Limit
	f.Page = oneMore(f.Page)
	return read(s, c, func(tx *store.Tx) (list api.List[corral.Run], err error) {
		if f.Cluster, err = optional(q, "cluster", clusterID(tx)); err != nil {
			return list, err
		}
		runs, err := tx.Runs(f)
		return listOf(runs, limit, func(r corral.Run) int64 { return int64(r.ID) }), err
	})
}

func (s *Server) createRun(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewRun) (step[corral.Run], error) {
		var p *run.Prepared
		err := s.untilStop(ctx, func(ctx context.Context) (err error) {
			p, err = s.prepareRun(ctx, in)
			return err
		})
		if err != nil {
			return step[corral.Run]{}, err
		}
		return step[corral.Run]{
			write: p.Insert,
			done:  func(r corral.Run) { s.runs.Start(r.ID) },
			undo:  func() { s.discardRun(p) },
		}, nil
	})
}

// prepareRun checks a request for a run and lays the run out on disk.
func (s *Server) prepareRun(ctx context.Context, in api.NewRun) (*run.Prepared, error) {
	if err := checkRun(in); err != nil {
		return nil, err
	}
	cluster, err := s.clusterFor(ctx, in.Cluster)
	if err != nil {
		return nil, err
	}
	return s.runs.Prepare(ctx, run.NewRun{
		Cluster:      cluster,
		Workflow:     in.Workflow,
		WorkflowName: orDefault(in.WorkflowName, "workflow"),
		SourceDir:    in.SourceDir,
		Dir:          in.Dir,
		Options:      in.Options,
		Labels:       in.Labels,
	})
}

// checkRun checks what internal/run does not.
func checkRun(in api.NewRun) error {
	var k checker
	k.invalid(len(in.Workflow) == 0, "workflow", "missing")
	k.text("workflow_name", in.WorkflowName)
	k.absolute("source_dir", in.SourceDir)
	k.absolute("dir", in.Dir)
	k.labels(in.Labels)
	return k.err
}

// clusterFor finds the cluster of a new run.
func (s *Server) clusterFor(ctx context.Context, ref string) (id corral.ClusterID, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		cluster, err := clusterNamed(tx, "cluster", orDefault(ref, defaultCluster))
		id = cluster.ID
		return err
	})
	return id, err
}

func (s *Server) discardRun(p *run.Prepared) {
	if err := p.Discard(); err != nil {
		s.lg.Error("removing what was prepared for a run failed", "err", err)
	}
}

// theRun finds the run that the path names.
func theRun(c echo.Context, tx *store.Tx) (corral.Run, error) {
	id, err := idParam[corral.RunID](c)
	if err != nil {
		return corral.Run{}, err
	}
	r, err := tx.Run(id)
	return r, missing("id", err)
}

func (s *Server) getRun(c echo.Context) error {
	return answerOrWait(s, c, target[corral.Run]{
		load:  func(tx *store.Tx) (corral.Run, error) { return theRun(c, tx) },
		about: func(r corral.Run) store.Subject { return store.Subject{Object: corral.ObjectRun, ID: int64(r.ID)} },
		until: func(list string) (func(corral.Run) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.RunStates)
			return u.Run, err
		},
	})
}

// moveRun is a change that internal/run commits by itself, because it touches the run's journal or
// directory too; the answer is kept right after it. Between the two corrald may die, so that a move
// must be harmless to repeat: a run whose state is one of already is answered as it is.
func (s *Server) moveRun(c echo.Context, move func(context.Context, corral.RunID) (corral.Run, error), already ...corral.RunState) error {
	return change(s, c, http.StatusOK, func(ctx context.Context, _ none) (step[corral.Run], error) {
		var r corral.Run
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			r, err = theRun(c, tx)
			return err
		})
		if err == nil && !slices.Contains(already, r.State) {
			r, err = move(ctx, r.ID)
		}
		if err != nil {
			return step[corral.Run]{}, err
		}
		return only(func(*store.Tx) (corral.Run, error) { return r, nil })
	})
}

func (s *Server) cancelRun(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return s.moveRun(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return s.runs.Cancel(ctx, actor(c), id)
	}, corral.RunCancelling, corral.RunCancelled)
}

func (s *Server) resumeRun(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return s.moveRun(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return s.runs.Resume(ctx, actor(c), id)
	}, corral.RunRunning)
}

func (s *Server) removeRun(c echo.Context) error {
	q := queryOf(c, "purge")
	purge := q.flag("purge")
	if q.err != nil {
		return q.err
	}
	return s.moveRun(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return s.runs.Remove(ctx, actor(c), id, purge)
	}, corral.RunDeleted)
}

func (s *Server) runHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		r, err := theRun(c, tx)
		return []subject{{corral.ObjectRun, int64(r.ID)}}, err
	})
}

// listTasks answers with a page of a run's tasks; after is the place of a task in the workflow, from 1.
func (s *Server) listTasks(c echo.Context) error {
	q := queryOf(c, "after", "limit", "state")
	page, in := q.page(api.MaxTasks), states(q, corral.TaskStates)
	if q.err != nil {
		return q.err
	}
	id, err := idParam[corral.RunID](c)
	if err != nil {
		return err
	}
	all, err := s.runs.Tasks(c.Request().Context(), id)
	if err != nil {
		return missing("id", err)
	}
	return c.JSON(http.StatusOK, taskPage(all, page, in))
}

// taskPage picks a page of the tasks in one of the states; none means any.
func taskPage(all []api.Task, page store.Page, in []corral.TaskState) api.List[api.Task] {
	var tasks []api.Task
	last := page.After
	for i := int(min(page.After, int64(len(all)))); i < len(all); i++ {
		if len(in) > 0 && !slices.Contains(in, all[i].State) {
			continue
		}
		if len(tasks) == page.Limit {
			return whole(tasks, strconv.FormatInt(last, 10))
		}
		tasks, last = append(tasks, all[i]), int64(i+1)
	}
	return whole(tasks, "")
}

func (s *Server) taskLog(c echo.Context) error {
	q := queryOf(c, "file")
	file := q.oneOf("file", run.LogStdout, run.LogStderr, run.LogRecord)
	if q.err != nil {
		return q.err
	}
	id, err := idParam[corral.RunID](c)
	if err != nil {
		return err
	}
	f, err := s.runs.Log(c.Request().Context(), id, pathParam(c, "task"), 0, file)
	if err != nil {
		return missing("task", err)
	}
	defer f.Close()
	return sendFile(c, f)
}
