package ensembles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// carryOut records a decision, in one transaction with the glideins that it requests and withdraws, and then creates
// and cancels runs. A decision based on outdated state has no effect, because another decision follows soon.
func (c *carrier) carryOut(ctx context.Context, s Sight, x Decision) error {
	after := c.progress(s, x)
	if x.orders() || x.over() || !reflect.DeepEqual(after, s.Row.Progress) {
		err := c.db.Write(ctx, store.Actor, func(tx *store.Tx) error { return c.write(tx, s, x, after) })
		if err != nil {
			return err
		}
	}
	for _, id := range x.Cancel {
		if _, err := c.Runs.Cancel(ctx, store.Actor, id); err != nil && corral.KindOf(err) != corral.Conflict {
			return err
		}
	}
	for _, member := range x.Begin {
		if err := c.begin(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

// progress returns the ensemble's progress after a decision. The money spent is recorded together with other changes.
func (c *carrier) progress(s Sight, x Decision) record.Progress {
	after := s.Row.Progress
	after.Members = x.Members
	if x.Stepped && (s.Row.Steps == 0 || x.orders()) {
		after.Steps++
	}
	if x.over() || !reflect.DeepEqual(after, s.Row.Progress) || s.Now.Sub(s.Row.UpdatedAt) > noteEvery {
		after.Spent = c.direction.Problem.Terms.Amount(x.Spent).String()
	}
	return after
}

// orders reports whether pilots are requested or withdrawn.
func (x Decision) orders() bool { return len(x.Start)+len(x.Stop) > 0 }

// over reports whether the ensemble is to end, or has ended.
func (x Decision) over() bool { return x.Ending != "" || x.Ended }

// noteEvery is the interval at which the money spent is recorded while nothing else changes.
const noteEvery = 5 * time.Second

// write records a decision.
func (c *carrier) write(tx *store.Tx, s Sight, x Decision, after record.Progress) error {
	row, err := tx.Ensemble(c.id)
	if err != nil || row.State != s.Row.State || !reflect.DeepEqual(row.Progress, s.Row.Progress) {
		return err
	}
	for _, id := range x.Stop {
		if _, err := tx.AskGlidein(id, corral.AskCancel, fmt.Sprintf("ensemble %d releases it", c.id)); err != nil {
			return err
		}
	}
	for i, walltime := range x.Start {
		err := c.ask(tx, s.Row, len(s.Glideins)+i, walltime)
		if corral.KindOf(err) == corral.Forbidden { // its owner's limit is reached
			if err := c.limited(tx, err.Error()); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
	}
	if err := told(tx, c.id, s.Row.Members, after.Members); err != nil {
		return err
	}
	if _, err := tx.SetEnsemble(c.id, after); err != nil {
		return err
	}
	if x.Ending != "" {
		_, err = tx.MoveEnsemble(c.id, record.Stop, x.Ending)
	}
	if x.Ended {
		_, err = tx.MoveEnsemble(c.id, record.End, "")
	}
	return err
}

// limited records in the ensemble's history why no pilot is requested for it, once for each reason.
func (c *carrier) limited(tx *store.Tx, why string) error {
	if c.limit == why {
		return nil
	}
	c.limit = why
	return tx.Log(corral.ObjectEnsemble, int64(c.id), "limited", why)
}

// told records in the ensemble's history which of its workflows have changed their standing.
func told(tx *store.Tx, id record.ID, before, after []record.Member) error {
	for k, m := range after {
		if m.Standing == before[k].Standing {
			continue
		}
		text := fmt.Sprintf("%d: %s", k, m.Workflow)
		if m.Reason != "" {
			text += ": " + m.Reason
		}
		if err := tx.Log(corral.ObjectEnsemble, int64(id), string(m.Standing), text); err != nil {
			return err
		}
	}
	return nil
}

// retries is the number of times that a failed pilot is requested again.
const retries = 3

// ask requests a pilot.
func (c *carrier) ask(tx *store.Tx, row record.Ensemble, number int, walltime time.Duration) error {
	p := row.Pilots
	p.Walltime = corral.Seconds(walltime)
	cluster, err := tx.Cluster(row.Cluster)
	if err != nil {
		return err
	}
	site, err := tx.Site(row.Pilots.SiteID)
	if err != nil {
		return err
	}
	in := wanted(p, row.ClusterName)
	in.Labels = labelled(c.id, "machine", number)
	tx.Because(fmt.Sprintf("ensemble %d needs machine %d", c.id, number))
	_, err = admit.Glidein(tx, admit.GlideinRequest{Request: in, Owner: row.Owner, Site: site, Cluster: cluster,
		Machine: c.Machine, Labels: []string{record.Label}})
	return err
}

// wanted returns the request for a pilot.
func wanted(p record.Pilots, cluster string) api.NewGlidein {
	return api.NewGlidein{Site: p.Site, Cluster: cluster,
		Shape:        corral.Shape{Hosts: 1, CPUs: p.CPUs, MemoryMiB: p.MemoryMiB, Walltime: p.Walltime},
		Resubmission: api.Resubmission{Retries: retries}}
}

func labelled(id record.ID, what string, number int) map[string]string {
	return map[string]string{record.Label: strconv.FormatInt(int64(id), 10), what: strconv.Itoa(number)}
}

// begin creates the run of a workflow. A workflow whose run cannot be created is rejected with the reason.
func (c *carrier) begin(ctx context.Context, member int) error {
	row, err := store.Read(ctx, c.db, func(tx *store.Tx) (record.Ensemble, error) { return tx.Ensemble(c.id) })
	if err != nil || row.State != record.Running || row.Members[member].Standing != record.Waiting {
		return err
	}
	in, err := c.Shelf.request(row.Files, member)
	if err != nil {
		return err
	}
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, labelled(c.id, "workflow", member)) // they identify the ensemble's runs
	in.Labels = labels
	var p *run.Prepared
	flow, err := request.Workflow(ctx, in.Workflow, in.WorkflowName)
	if err == nil {
		p, err = c.Runs.Prepare(ctx, row.Cluster, in, flow)
	}
	switch corral.KindOf(err) {
	case corral.Invalid, corral.Unsatisfiable, corral.NotFound:
		return c.stands(ctx, member, record.Member{Standing: record.Rejected, Reason: err.Error()})
	}
	if err != nil {
		return err
	}
	var made corral.Run
	err = c.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		tx.Because(fmt.Sprintf("ensemble %d begins workflow %d", c.id, member))
		if made, err = p.Insert(tx, admit.RunOfEnsemble); err != nil {
			return err
		}
		return c.stand(tx, member, record.Member{Standing: record.Begun, Run: made.ID})
	})
	if err != nil {
		return errors.Join(err, p.Discard())
	}
	c.Runs.Start(made.ID)
	return nil
}

func (c *carrier) stands(ctx context.Context, member int, as record.Member) error {
	return c.db.Write(ctx, store.Actor, func(tx *store.Tx) error { return c.stand(tx, member, as) })
}

// stand records the new standing of a waiting workflow. Its callers have checked that the workflow is waiting, and only
// they begin workflows; stand returns a Conflict error if the workflow is no longer waiting.
func (c *carrier) stand(tx *store.Tx, member int, as record.Member) error {
	row, err := tx.Ensemble(c.id)
	if err != nil {
		return err
	}
	if m := row.Members[member]; row.State != record.Running || m.Standing != record.Waiting {
		return corral.Errorf(corral.Conflict, "workflow %d of ensemble %d is %s", member, c.id, m.Standing)
	}
	after := row.Progress
	after.Members = slices.Clone(row.Members)
	m := &after.Members[member]
	m.Standing, m.Reason, m.Run = as.Standing, as.Reason, as.Run
	if err := told(tx, c.id, row.Members, after.Members); err != nil {
		return err
	}
	_, err = tx.SetEnsemble(c.id, after)
	return err
}
