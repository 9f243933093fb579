package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/provision"
	"github.com/corral-pilot/corral/internal/request"
	"github.com/corral-pilot/corral/internal/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner"
	"github.com/corral-pilot/corral/planner/montecarlo"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/wfformat"
)

// planHandlers answer requests about plans. To make one takes a look at the store and then the planner's time, outside
// of any transaction; to provision it is a transaction that creates its glideins, which the engine then carries out
// like all others.
type planHandlers struct {
	rest.Resource[corral.Plan]
	cfg      Config
	glideins *glideinHandlers
}

func newPlans(a *rest.Adapter, cfg Config) *planHandlers {
	return &planHandlers{cfg: cfg, glideins: newGlideins(a, cfg), Resource: rest.Resource[corral.Plan]{
		Adapter: a,
		Object:  corral.ObjectPlan,
		ID:      func(p corral.Plan) int64 { return int64(p.ID) },
		Find:    func(c *rest.Call, tx *store.Tx) (corral.Plan, error) { return numbered(c, tx.Plan) },
	}}
}

func (h *planHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/plans", h.list, listing...),
		rest.Post("/v1/plans", h.create).WithBody(api.MaxRunBody), // the workflow is in it
		rest.Get("/v1/plans/:id", h.Get),
		rest.Delete("/v1/plans/:id", h.remove),
		rest.Post("/v1/plans/:id/provision", h.provision),
		rest.Post("/v1/plans/:id/release", h.release),
		rest.Get("/v1/plans/:id/history", h.History, paging...),
		rest.Get("/v1/plans/:id/revisions", h.revisions),
	}
}

func (h *planHandlers) list(c *rest.Call) error { return h.Page(c, (*store.Tx).Plans) }

// create makes a plan and keeps it, feasible or not, unless the request is only to see it.
func (h *planHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(ctx context.Context, in api.NewPlan) (rest.Step[corral.Plan], error) {
		row := corral.Plan{Owner: c.Actor(), Auto: in.Auto}
		err := request.CheckPlan(&in)
		if err == nil {
			err = h.UntilStop(ctx, func(ctx context.Context) error { return h.make(ctx, in, &row) })
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
		return rest.Only(func(tx *store.Tx) (corral.Plan, error) { return tx.CreatePlan(row) })
	})
}

// make has the planner make a plan of what is known now, and writes it down in row.
func (h *planHandlers) make(ctx context.Context, in api.NewPlan, row *corral.Plan) error {
	name := cmp.Or(in.WorkflowName, "workflow")
	flow, _, err := wfformat.Read(ctx, bytes.NewReader(in.Workflow), name, workflow.Options{})
	if err != nil {
		return err
	}
	experience, err := h.experience(ctx, in, row.Owner, flow)
	if err != nil {
		return err
	}
	problem := plan.Problem{}
	var sources []string
	if problem.Work, sources, err = provision.Work(flow, experience); err != nil {
		return err
	}
	cluster, facts, err := h.facts(ctx, in)
	if err != nil {
		return err
	}
	share := montecarlo.WaitShare(in.Goal, len(problem.Work.Tasks))
	assumed := []string(nil)
	problem.Sites, assumed = provision.Sites(facts, share, time.Now())
	var learned []string
	if problem.Cluster, learned, err = h.learned(ctx, cluster); err != nil {
		return err
	}
	if problem.Present, err = h.present(ctx, cluster); err != nil {
		return err
	}
	if len(problem.Sites) == 0 {
		return corral.ErrorAt(corral.Unsatisfiable, "sites", "no site takes pilots: corral site create makes one, and "+
			"corral site list shows what keeps those there are from it")
	}
	said, err := provision.WhatIf(problem.Sites, in)
	if err == nil {
		err = provision.SameUnit(problem.Sites, in.Goal.Budget)
	}
	if err != nil {
		return err
	}
	opts, err := options(in)
	if err != nil {
		return err
	}
	made, err := simulated(problem, in, opts)
	if err != nil {
		return err
	}
	made.Reasons = slices.Concat(made.Reasons, sources, assumed, learned, said)
	if in.Marginal {
		made.Marginal = plan.Marginals(made.Front)
	}
	return write(row, made, cluster)
}

// options are how a plan is to be sought.
func options(in api.NewPlan) (planner.Options, error) {
	opts := planner.Options{Shape: in.HostCPUs, Seed: in.Seed}
	if in.Clustering == "" {
		return opts, nil
	}
	asked, err := corral.ParseClustering(in.Clustering)
	opts.Clustering = &asked
	return opts, err
}

// write fills the row of a plan.
func write(row *corral.Plan, made *plan.Plan, cluster corral.Cluster) error {
	document, err := json.Marshal(made)
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	row.Cluster, row.ClusterName, row.Workflow, row.Document = cluster.ID, cluster.Name, made.Workflow, document
	row.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(document))
	row.State = corral.PlanReady
	if !made.Feasible {
		row.State, row.Reason = corral.PlanInfeasible, made.Reasons[0]
	}
	return nil
}

// facts reads what is known of the cluster and of the sites that the plan may use.
func (h *planHandlers) facts(ctx context.Context, in api.NewPlan) (cluster corral.Cluster, all []provision.Facts,
	err error) {
	err = h.DB.View(ctx, func(tx *store.Tx) error {
		if cluster, err = clusterNamed(tx, cmp.Or(in.Cluster, defaultCluster)); err != nil {
			return err
		}
		if err = ready(cluster); err != nil {
			return err
		}
		sites, err := sitesNamed(tx, in.Sites)
		for _, s := range sites {
			f := provision.Facts{Site: s, Machine: request.Machine(s, h.cfg.Machine)}
			if f.Waits, err = tx.Waits(store.WaitFilter{Site: s.ID, Last: 1000}); err != nil {
				return err
			}
			if f.Load, err = tx.Load(s.ID); err != nil {
				return err
			}
			if f.Ledger, err = tx.Ledger(s.ID); err != nil {
				return err
			}
			all = append(all, f)
		}
		return err
	})
	return cluster, all, err
}

// present lists the workers that a plan uses before it asks for others.
func (h *planHandlers) present(ctx context.Context, cluster corral.Cluster) ([]plan.Present, error) {
	glideins, err := store.Read(ctx, h.DB, func(tx *store.Tx) ([]corral.Glidein, error) {
		return tx.Glideins(store.GlideinFilter{Cluster: cluster.ID, Live: true, InBrief: true})
	})
	all, _ := provision.Present(glideins, h.cfg.Clusters.Workers(cluster.ID), time.Now())
	return all, err
}

// sitesNamed finds sites by name or id; none are all that are not DELETED.
func sitesNamed(tx *store.Tx, refs []string) (sites []corral.Site, err error) {
	if len(refs) == 0 {
		return tx.Sites(store.Filter{})
	}
	for _, ref := range refs {
		s, err := siteNamed(tx, ref)
		if err != nil {
			return nil, err
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// provision creates the glideins of a plan's pilots. The plan's own state makes it safe to repeat.
func (h *planHandlers) provision(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, _ rest.None) (rest.Step[corral.Plan], error) {
		p, err := h.Load(ctx, c)
		if err != nil {
			return rest.Step[corral.Plan]{}, err
		}
		asked, err := requests(p)
		for _, in := range asked {
			if err == nil && p.State == corral.PlanReady {
				err = h.glideins.canJoin(ctx, in)
			}
		}
		if err != nil {
			return rest.Step[corral.Plan]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Plan, error) {
			if p, err = h.Find(c, tx); err != nil || p.State == corral.PlanProvisioned {
				return p, err
			}
			if err = unscaled(tx, p.Cluster); err != nil {
				return p, err
			}
			if p, err = tx.MovePlan(p.ID, corral.PlanProvision, ""); err != nil {
				return p, err
			}
			if err = provision.CheckOpen(tx, p); err == nil {
				err = provision.Reserve(tx, p)
			}
			if err != nil {
				return p, err
			}
			return p, h.ask(c, tx, p)
		})
	})
}

// ask creates the glideins of a plan that has just begun.
func (h *planHandlers) ask(c *rest.Call, tx *store.Tx, p corral.Plan) error {
	asked, err := requests(p)
	if err != nil {
		return err
	}
	for _, in := range asked {
		g, err := request.Glidein(in, p.BeganAt)
		if err != nil {
			return err
		}
		g.Owner = c.Actor()
		site, cluster, err := whereOf(tx, in)
		if err == nil {
			err = request.Place(&g, site, cluster, h.cfg.Machine)
		}
		if err == nil {
			_, err = tx.CreateGlidein(g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// requests are what a plan's pilots become: requests for glideins, labelled with the plan.
func requests(p corral.Plan) ([]api.NewGlidein, error) {
	var document plan.Plan
	if err := json.Unmarshal(p.Document, &document); err != nil {
		return nil, fmt.Errorf("reading plan %d: %w", p.ID, err)
	}
	return provision.Glideins(&document, p), nil
}

// release lets the glideins of a plan go.
func (h *planHandlers) release(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
		return provision.Release(tx, p, "release was asked for")
	})
}

// revisions lists what was changed about a plan's pilots while its run went on.
func (h *planHandlers) revisions(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.List[corral.Revision], error) {
		p, err := h.Find(c, tx)
		if err != nil {
			return api.List[corral.Revision]{}, err
		}
		all, err := tx.Revisions(p.ID)
		return api.List[corral.Revision]{Items: append([]corral.Revision{}, all...)}, err
	})
}

// remove hides the record of a plan.
func (h *planHandlers) remove(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, p corral.Plan) (corral.Plan, error) {
		if p.State == corral.PlanDeleted {
			return p, nil
		}
		return tx.MovePlan(p.ID, corral.PlanRemove, "removal was asked for")
	})
}
