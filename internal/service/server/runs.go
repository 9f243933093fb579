package server

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/planning"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/workflow"
)

// runHandlers answer requests about runs and their tasks.
//
// Package run manages runs: their rows follow from journals that it writes. So a handler validates a request and
// passes it on, and reads tasks from package run rather than from the store.
type runHandlers struct {
	rest.Resource[corral.Run]
	runs *run.Manager
	note func(...corral.Run) []corral.Run // adds data that is not stored
	desk *planning.Desk                   // chooses how tasks become jobs if the request leaves that open
}

func newRuns(a *rest.Adapter, cfg Config) *runHandlers {
	desk := planning.NewDesk(a.DB, cfg.Clusters, cfg.Runs, siteaccess.Queues{Reach: cfg.Reach}, cfg.Machine)
	note := func(runs ...corral.Run) []corral.Run {
		for i, r := range runs {
			runs[i].Unreachable = cfg.Outages.Of(corral.ObjectRun, int64(r.ID))
		}
		return cfg.Runs.Noted(runs...)
	}
	return &runHandlers{runs: cfg.Runs, note: note, desk: desk, Resource: rest.Resource[corral.Run]{
		Adapter: a,
		Object:  corral.ObjectRun,
		ID:      func(r corral.Run) int64 { return int64(r.ID) },
		Find: func(c *rest.Call, tx *store.Tx) (corral.Run, error) {
			r, err := rest.Numbered(c, tx.Run)
			return note(r)[0], err
		},
		Progress: func(list string) (func(corral.Run) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.RunStates)
			return u.Run, err
		},
	}}
}

func (h *runHandlers) routes() []rest.Route {
	ahead := clusterAhead(h.Adapter)
	return []rest.Route{
		rest.Get("/v1/runs", h.list, slices.Concat(listing, []string{"label", "cluster", "state"})...),
		rest.Post("/v1/runs", h.create).WithBody(api.MaxRunBody).Ahead(h.Adapter, ahead), // it contains the workflow
		rest.Post("/v1/runs/dry-run", h.dryRun).WithBody(api.MaxRunBody).Ahead(h.Adapter, ahead),
		rest.Get("/v1/runs/:id", h.Get, waiting...),
		rest.Delete("/v1/runs/:id", h.remove, "purge"),
		rest.Post("/v1/runs/:id/cancel", h.cancel),
		rest.Post("/v1/runs/:id/resume", h.resume),
		rest.Post("/v1/runs/:id/close", h.close),
		rest.Get("/v1/runs/:id/history", h.History, paging...),
		rest.Get("/v1/runs/:id/disk", h.disk),
		rest.Get("/v1/runs/:id/profile", h.document(run.ProfileText)),
		rest.Get("/v1/runs/:id/workflow", h.document(run.Workflow)),
	}
}

func (h *runHandlers) list(c *rest.Call) error {
	labels, in := c.Query.Labels(), request.States(c.Query, corral.RunStates)
	return h.Page(c, func(tx *store.Tx, f store.Filter) (runs []corral.Run, err error) {
		narrow := store.RunFilter{Filter: f, Labels: labels, States: in}
		if narrow.Cluster, err = clusterFilter(tx, c.Query); err != nil {
			return nil, err
		}
		runs, err = tx.Runs(narrow)
		return h.note(runs...), err
	})
}

// create creates a run's folder, then records the run, then starts it. A crash in between leaves a folder without a
// run, which internal/work/run removes, or a recorded run that was not started, which that package starts.
func (h *runHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewRun) (rest.Step[corral.Run], error) {
		p, err := rest.Until(ctx, h.Adapter, func(ctx context.Context) (*run.Prepared, error) {
			return h.prepare(ctx, c.Caller(), in)
		})
		if err != nil {
			return rest.Step[corral.Run]{}, err
		}
		return rest.Step[corral.Run]{
			Write: func(tx *store.Tx) (corral.Run, error) { return p.Insert(tx, admit.Run) },
			Done:  func(r corral.Run) { h.runs.Start(r.ID) },
			Undo: func() {
				if err := p.Discard(); err != nil {
					h.Log.Error("removing the folder prepared for a run failed", "error", err)
				}
			},
		}, nil
	})
}

// prepare checks a request for a run and creates its folder. Parsing a large workflow takes a while, so prepare ends
// early when corrald stops.
func (h *runHandlers) prepare(ctx context.Context, who access.Caller, in api.NewRun) (*run.Prepared, error) {
	cluster, flow, err := h.complete(ctx, who, &in)
	if err != nil {
		return nil, err
	}
	return h.runs.Prepare(ctx, cluster.ID, in, flow)
}

// complete checks a request for a run, adds defaults, finds its cluster, and parses its workflow. An open run has no
// workflow.
func (h *runHandlers) complete(ctx context.Context, who access.Caller, in *api.NewRun) (
	cluster corral.Cluster, flow *workflow.Workflow, err error,
) {
	if err := admit.CheckRun(who, *in); err != nil {
		return cluster, nil, err
	}
	cluster, err = rest.View(ctx, h.DB, func(tx *store.Tx) (corral.Cluster, error) {
		return ownCluster(tx, who.Name, cmp.Or(in.Cluster, defaultCluster))
	})
	if err = cmp.Or(err, request.CheckStream(in.Options, cluster)); err != nil || in.Open {
		return cluster, nil, err
	}
	in.WorkflowName = cmp.Or(in.WorkflowName, "workflow")
	if err = run.CheckOptions(*in); err != nil {
		return cluster, nil, err
	}
	planned, err := planning.Runtimes(ctx, h.DB, in.Labels)
	if err != nil {
		return cluster, nil, err
	}
	if flow, err = request.Workflow(ctx, in.Workflow, in.WorkflowName); err != nil {
		return cluster, nil, err
	}
	planning.AsPlanned(in, flow, planned)
	if err := planning.Remember(ctx, h.DB, who.Name, in, flow); err != nil {
		return cluster, nil, err
	}
	return cluster, flow, h.desk.Cluster(ctx, in, flow, cluster)
}

// dryRun answers with the expected effects of the requested run. It creates nothing, so it needs no key.
func (h *runHandlers) dryRun(c *rest.Call) error {
	return rest.Ask(h.Adapter, c, func(ctx context.Context, in api.NewRun) (answer api.DryRun, err error) {
		if in.Open {
			return answer, corral.ErrorAt(corral.Invalid, "open", "an open run has no workflow to examine")
		}
		cluster, flow, err := h.complete(ctx, c.Caller(), &in)
		if err == nil {
			answer, err = h.runs.DryRun(ctx, cluster, in, flow)
		}
		return answer, err
	})
}

// move makes a change that internal/work/run commits itself, because it also affects the run's journal or directory;
// the answer is stored just after it. corrald may die between the two, so a move must be harmless to repeat: a run
// that is already in one of the given states is returned unchanged.
func (h *runHandlers) move(c *rest.Call, move func(context.Context, corral.RunID) (corral.Run, error),
	already ...corral.RunState) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, _ rest.None) (rest.Step[corral.Run], error) {
		r, err := h.Load(ctx, c)
		if err == nil && !slices.Contains(already, r.State) {
			r, err = move(ctx, r.ID)
		}
		if err != nil {
			return rest.Step[corral.Run]{}, err
		}
		return rest.Only(func(*store.Tx) (corral.Run, error) { return r, nil })
	})
}

// cancel kills the run's tasks. Finished ones stay finished, and the run can be resumed.
func (h *runHandlers) cancel(c *rest.Call) error {
	return h.move(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return h.runs.Cancel(ctx, c.Actor(), id)
	}, corral.RunCancelling, corral.RunCancelled)
}

// resume continues a run from its state when it failed, stalled or was cancelled.
func (h *runHandlers) resume(c *rest.Call) error {
	return h.move(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return h.runs.Resume(ctx, c.Actor(), id)
	}, corral.RunRunning)
}

// close ends the addition of tasks to an open run.
func (h *runHandlers) close(c *rest.Call) error {
	return h.move(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return rest.Until(ctx, h.Adapter, func(ctx context.Context) (corral.Run, error) {
			return run.Close(ctx, h.runs, c.Actor(), id)
		})
	})
}

// remove hides the record of a finished run; with purge, its directory is also deleted.
func (h *runHandlers) remove(c *rest.Call) error {
	purge := c.Query.Flag("purge")
	if err := c.Query.Err(); err != nil {
		return err
	}
	return h.move(c, func(ctx context.Context, id corral.RunID) (corral.Run, error) {
		return h.runs.Remove(ctx, c.Actor(), id, purge)
	}, corral.RunDeleted)
}

// disk answers with the present size of the run's directory.
func (h *runHandlers) disk(c *rest.Call) error {
	return h.About(c, func(ctx context.Context, r corral.Run) (any, error) { return run.Disk(ctx, r) })
}

// document answers with a document from the run's directory.
func (h *runHandlers) document(open func(context.Context, corral.Run) (io.ReadCloser, error)) func(*rest.Call) error {
	return func(c *rest.Call) error {
		r, err := h.Load(c.Context(), c)
		if err != nil {
			return err
		}
		f, err := open(c.Context(), r)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.Stream("application/json", f)
	}
}
