package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/planning"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
)

// planHandlers answer requests about plans. Creating one needs a view of the store and then the planner's time,
// outside any transaction; provisioning it is a transaction that creates its glideins, which the engine handles like
// all others.
type planHandlers struct {
	rest.Resource[corral.Plan]
	cfg      Config
	glideins *glideinHandlers
	desk     *planning.Desk
}

func newPlans(a *rest.Adapter, cfg Config) *planHandlers {
	return &planHandlers{cfg: cfg, glideins: newGlideins(a, cfg),
		desk: planning.NewDesk(a.DB, cfg.Clusters, cfg.Runs, siteaccess.Queues{Reach: cfg.Reach}, cfg.Machine),
		Resource: rest.Resource[corral.Plan]{
			Adapter: a,
			Object:  corral.ObjectPlan,
			ID:      func(p corral.Plan) int64 { return int64(p.ID) },
			Find:    func(c *rest.Call, tx *store.Tx) (corral.Plan, error) { return rest.Numbered(c, tx.Plan) },
		}}
}

func (h *planHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/plans", h.Pages((*store.Tx).Plans), listing...),
		rest.Post("/v1/plans", h.create).WithBody(api.MaxRunBody). // it contains the workflow
										Ahead(h.Adapter, clusterAhead(h.Adapter)),
		rest.Get("/v1/plans/:id", h.Get),
		rest.Delete("/v1/plans/:id", h.remove),
		rest.Post("/v1/plans/:id/provision", h.provision),
		rest.Post("/v1/plans/:id/release", h.release),
		rest.Get("/v1/plans/:id/history", h.History, paging...),
		rest.Get("/v1/plans/:id/revisions", h.revisions, paging...),
		rest.Get("/v1/plans/:id/schedule", h.schedule),
	}
}

// create computes a plan and stores it, feasible or not, unless the request is a dry run.
func (h *planHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewPlan) (rest.Step[corral.Plan], error) {
		row := corral.Plan{Owner: c.Actor(), Auto: in.Auto}
		var schedule *store.Schedule
		err := admit.CheckPlan(c.Caller(), &in, time.Now())
		if err == nil {
			schedule, err = rest.Until(ctx, h.Adapter, func(ctx context.Context) (*store.Schedule, error) {
				return h.draft(ctx, &in, &row)
			})
		}
		if err != nil {
			return rest.Step[corral.Plan]{}, err
		}
		if in.DryRun {
			return rest.Step[corral.Plan]{Status: http.StatusOK, Write: func(tx *store.Tx) (corral.Plan, error) {
				row.CreatedAt, row.UpdatedAt = tx.Now(), tx.Now()
				return row, nil
			}}, nil
		}
		return h.keep(ctx, row, schedule, in.Apply)
	})
}

// draft computes a plan for the workflow in a request, which it parses, or for the unfinished part of a run. It fills
// in row, whose owner is already set. It removes the text of the workflow from the request: planning takes a long time
// and does not need it.
func (h *planHandlers) draft(ctx context.Context, in *api.NewPlan, row *corral.Plan) (*store.Schedule, error) {
	cluster, sites, err := h.about(ctx, row.Owner, *in)
	if err != nil {
		return nil, err
	}
	if in.NextRun != nil {
		next := in.NextRun.Request(*in)
		if err := cmp.Or(request.CheckStream(next.Options, cluster), run.CheckOptions(next)); err != nil {
			return nil, err
		}
	}
	var flow *workflow.Workflow
	if in.Run == 0 {
		if flow, err = request.Workflow(ctx, in.Workflow, in.WorkflowName); err != nil {
			return nil, err
		}
		in.Workflow = nil
	}
	if in.NextRun != nil { // otherwise the plan's pilots would be requested in vain
		if err := h.cfg.Runs.Check(ctx, in.NextRun.Request(*in), flow); err != nil {
			return nil, err
		}
	}
	return h.desk.Draft(ctx, &planning.Request{NewPlan: *in, Flow: flow}, cluster, sites, row)
}

// keep returns the step that stores a plan, together with a schedule that is stored apart from it. With apply, the step
// also requests the pilots of a feasible plan. The schedule is discarded unless the step is written.
func (h *planHandlers) keep(ctx context.Context, row corral.Plan, schedule *store.Schedule, apply bool) (
	rest.Step[corral.Plan], error,
) {
	begin := func(_ *store.Tx, made corral.Plan) (corral.Plan, error) { return made, nil }
	discard := func() {
		if err := schedule.Discard(h.Life); err != nil {
			h.Log.Error("removing the schedule of a plan that was not created failed: the next start tries again",
				"error", err)
		}
	}
	if apply && row.State == corral.PlanReady {
		var err error
		if begin, err = h.beginning(ctx, row); err != nil {
			discard()
			return rest.Step[corral.Plan]{}, err
		}
	}
	return rest.Step[corral.Plan]{
		Write: func(tx *store.Tx) (corral.Plan, error) {
			made, err := admit.Plan(tx, row)
			if err == nil {
				err = schedule.Keep(tx, made)
			}
			if err != nil {
				return made, err
			}
			return begin(tx, made)
		},
		Undo: discard,
	}, nil
}

// about finds the cluster and the sites that an owner's plan may use.
func (h *planHandlers) about(ctx context.Context, owner string, in api.NewPlan) (cluster corral.Cluster,
	sites []corral.Site, err error) {
	err = h.DB.Request(ctx).View(ctx, func(tx *store.Tx) error {
		if cluster, err = clusterFor(tx, in); err == nil {
			err = access.MayUse(owner, "cluster", cluster.Name, cluster.Owner)
		}
		if err != nil {
			return err
		}
		if err = ready(cluster); err == nil && in.Auto { // such a plan could not be provisioned, and planning is slow
			err = admit.Uncontrolled(tx, cluster.ID)
		}
		if err != nil {
			return err
		}
		sites, err = sitesNamed(tx, owner, in.Sites)
		return err
	})
	return cluster, sites, err
}

// clusterFor finds the cluster that a plan's pilots will join; a plan for the rest of a run uses the run's cluster.
func clusterFor(tx *store.Tx, in api.NewPlan) (corral.Cluster, error) {
	if in.Run == 0 {
		return clusterNamed(tx, cmp.Or(in.Cluster, defaultCluster))
	}
	run, err := tx.Run(in.Run)
	if err != nil {
		return corral.Cluster{}, rest.Missing("run_id", err)
	}
	cluster, err := tx.Cluster(run.Cluster)
	if err == nil && in.Cluster != "" {
		var named corral.Cluster
		if named, err = clusterNamed(tx, in.Cluster); err == nil && named.ID != cluster.ID {
			err = corral.ErrorAt(corral.Invalid, "cluster", "run %d is on cluster %s", run.ID, cluster.Name)
		}
	}
	return cluster, err
}

// sitesNamed finds an owner's sites by name or id, each once. Without references it returns all of the owner's sites
// that are not DELETED.
func sitesNamed(tx *store.Tx, owner string, refs []string) (sites []corral.Site, err error) {
	if len(refs) == 0 {
		sites, err = tx.Sites(store.Filter{})
		return slices.DeleteFunc(sites, func(s corral.Site) bool { return s.Owner != owner }), err
	}
	for _, ref := range refs {
		s, err := siteNamed(tx, ref)
		if err == nil {
			err = access.MayUse(owner, "sites", s.Name, s.Owner)
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(sites, func(other corral.Site) bool { return other.ID == s.ID }) {
			return nil, corral.ErrorAt(corral.Invalid, "sites", "%s is given twice", s.Name)
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// provision creates the glideins of a plan's pilots. The plan's state makes repetitions safe.
func (h *planHandlers) provision(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, _ rest.None) (rest.Step[corral.Plan], error) {
		p, err := h.Load(ctx, c)
		if err != nil {
			return rest.Step[corral.Plan]{}, err
		}
		begin, err := h.beginning(ctx, p)
		if err != nil {
			return rest.Step[corral.Plan]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Plan, error) {
			if p, err = h.Find(c, tx); err != nil || p.State == corral.PlanProvisioned {
				return p, err
			}
			return begin(tx, p)
		})
	})
}

// beginning returns the step that moves a plan to PROVISIONED and requests its pilots. It fails if their workers cannot
// join the cluster, which is determined outside the transaction.
func (h *planHandlers) beginning(ctx context.Context, row corral.Plan) (
	func(*store.Tx, corral.Plan) (corral.Plan, error), error,
) {
	document, err := plan.Decode(row)
	if err == nil {
		err = h.canJoin(ctx, row, document)
	}
	return func(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
		p, err := admit.Provision(tx, p)
		if err == nil {
			err = cmp.Or(provision.CheckTime(p, document), provision.CheckOpen(tx, p, document))
		}
		if err == nil {
			err = provision.Begin(tx, p, document, h.cfg.Machine)
		}
		return p, err
	}, err
}

// canJoin returns an error with the reason if the workers of a READY plan's pilots cannot join its cluster.
func (h *planHandlers) canJoin(ctx context.Context, row corral.Plan, p *plan.Plan) error {
	if row.State != corral.PlanReady {
		return nil
	}
	for _, in := range provision.Requests(row, p.Pilots, 0) {
		// Ids replace the names, because the caller may not own the plan.
		in.Site, in.Cluster = fmt.Sprint(row.Sites[in.Site]), fmt.Sprint(row.Cluster)
		if err := h.glideins.canJoin(ctx, row.Owner, in); err != nil {
			return err
		}
	}
	return nil
}

// release releases the glideins of a plan.
func (h *planHandlers) release(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
		return provision.Release(tx, p, "release was requested")
	})
}

// revisions lists the changes to a plan's pilots during its run.
func (h *planHandlers) revisions(c *rest.Call) error {
	return rest.Part(h.Adapter, c, func(tx *store.Tx, page store.Page) ([]corral.Revision, error) {
		p, err := h.Find(c, tx)
		if err != nil {
			return nil, err
		}
		return tx.Revisions(p.ID, page)
	}, func(r corral.Revision) int64 { return int64(r.Number) })
}

// schedule answers with the place and time of each task in a plan, or in the nearest feasible plan, as lines of JSON.
func (h *planHandlers) schedule(c *rest.Call) error {
	row, err := h.Load(c.Context(), c)
	if err != nil {
		return err
	}
	document, err := plan.Decode(row)
	if err != nil {
		return err
	}
	if document.Nearest != nil {
		document = document.Nearest
	}
	if document.Apart == nil {
		var lines bytes.Buffer
		if _, err := plan.WriteSchedule(&lines, document.Schedule); err != nil {
			return err
		}
		return c.Lines(&lines)
	}
	lines, err := h.DB.Schedule(row)
	if err != nil {
		return err
	}
	defer lines.Close()
	return c.Lines(lines)
}

// remove hides the record of a plan. A schedule that is stored apart is deleted.
func (h *planHandlers) remove(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(context.Context, rest.None) (rest.Step[corral.Plan], error) {
		return rest.Step[corral.Plan]{
			Write: func(tx *store.Tx) (corral.Plan, error) {
				p, err := h.Find(c, tx)
				if err != nil || p.State == corral.PlanDeleted {
					return p, err
				}
				return tx.MovePlan(p.ID, corral.PlanRemove, "removal was requested")
			},
			Done: func(corral.Plan) {
				if err := h.DB.SweepSchedules(h.Life); err != nil {
					h.Log.Error("removing the schedule of a plan failed: the next start tries again", "error", err)
				}
			},
		}, nil
	})
}
