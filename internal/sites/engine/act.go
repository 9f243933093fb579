package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/worldstate"
)

// perform carries out the decisions: first all cancellations together, then the rest in order. Cancellations make
// room for new jobs, and many of them can be sent as one command. An error means that the site could not be reached
// or did not answer, or, if it is a Conflict, that the state has changed in the meantime. In both cases the actions are
// decided again later.
func (l *siteLoop) perform(ctx context.Context, w turn, actions []reconcile.Action) error {
	var cancels []reconcile.Cancel
	var rest []reconcile.Action
	for _, a := range actions {
		if c, ok := a.(reconcile.Cancel); ok {
			cancels = append(cancels, c)
		} else {
			rest = append(rest, a)
		}
	}
	if err := l.cancel(ctx, w, cancels); err != nil {
		return err
	}
	for _, a := range rest {
		if err := l.act(ctx, w, a); err != nil {
			return err
		}
	}
	return nil
}

// act performs one action other than a cancellation. The actions in the first switch log themselves when they are
// carried out, because they may have to wait for many steps.
func (l *siteLoop) act(ctx context.Context, w turn, a reconcile.Action) error {
	switch a := a.(type) {
	case reconcile.Resume:
		if l.sender.waits(w, a) {
			return nil
		}
		l.line.acting(w.Site, a)
		return l.send(ctx, w, a.Job)
	case reconcile.Drain:
		return l.drain(ctx, w, a)
	case reconcile.Renew:
		return l.tokens.renew(ctx, w, a)
	case reconcile.Submit:
		g := find(w.Glideins, a.Glidein)
		if a.Kind == corral.PilotJob && g != nil && l.relay.Awaited(ctx, w.World, *g) {
			return nil
		}
	}
	l.line.acting(w.Site, a)
	switch a := a.(type) {
	case reconcile.Submit:
		return l.submit(ctx, w, a)
	case reconcile.AskGlidein, reconcile.Retime, reconcile.Settle:
		return l.line.write(ctx, func(tx *store.Tx) error { return worldstate.Record(tx, a) })
	case reconcile.MoveSite:
		return l.line.moveSite(ctx, a.Move, a.Reason)
	case reconcile.UsePackage:
		return l.line.write(ctx, func(tx *store.Tx) error {
			_, err := tx.SetSite(l.line.id, func(s *corral.Site) {
				s.Install(s.Platform, a.Package.Name, a.Package.Digest)
			})
			return errors.Join(err, tx.Log(corral.ObjectSite, int64(l.line.id), "package", a.Why()))
		})
	case reconcile.Sweep:
		return l.sweep(ctx, w.Site)
	}
	return fmt.Errorf("action %T has no effect", a) // unreachable: the switches list every action
}

// submit records the intent, then submits the job. Files that a site needs before its first job are brought there
// before the intent is recorded: an intent without an answer is looked up at the site, which must be able to answer.
func (l *siteLoop) submit(ctx context.Context, w turn, a reconcile.Submit) error {
	if !l.line.take() {
		return nil
	}
	site, err := l.stager.prepare(ctx, w, a)
	if err != nil {
		return l.stager.unusable(ctx, err)
	}
	w.Site = site
	job, err := l.sender.intend(ctx, w, a)
	if err != nil {
		return fmt.Errorf("recording the intent of a %s job: %w", a.Kind, err)
	}
	return l.send(ctx, w, job)
}

// send submits a job whose intent is recorded, and records the answer. Without an answer the job stays NEW, and
// Decide requests a lookup.
func (l *siteLoop) send(ctx context.Context, w turn, job corral.Job) error {
	ev, err := l.sender.send(ctx, w, job)
	if err != nil || ev.Move == "" {
		return err
	}
	return l.moveJob(ctx, w.now, job, ev)
}

// cancel ends jobs, all at the same time, and returns when the site confirms their end or some must wait for a later
// step. It records the intent first: if corrald dies now, the next one continues, and a job that ends by itself
// meanwhile counts as removed and not as failed.
func (l *siteLoop) cancel(ctx context.Context, w turn, cancels []reconcile.Cancel) error {
	var jobs []corral.Job
	for _, c := range cancels {
		if err := l.line.ask(ctx, w, c.Job, corral.AskCancel, c); err != nil {
			return err
		}
		jobs = append(jobs, c.Job)
	}
	return l.ends.end(ctx, w, jobs)
}

// drain passes the request to the attempt's dispatcher once in the life of this process: the dispatcher remembers the
// request for workers that reconnect, but only for its own lifetime.
func (l *siteLoop) drain(ctx context.Context, w turn, a reconcile.Drain) error {
	if err := l.line.ask(ctx, w, a.Job, corral.AskDrain, a); err != nil {
		return err
	}
	if g := find(w.Glideins, a.Job.Glidein); g != nil && !l.told[a.Job.ID] {
		l.told[a.Job.ID] = true
		l.e.clusters.Drain(g.Cluster, a.Job.ID)
	}
	return nil
}

// drainFromAfar drains attempts at an unreachable site: dispatchers notify their workers directly, without the site.
func (l *siteLoop) drainFromAfar(ctx context.Context, w turn) error {
	for _, a := range reconcile.Decide(w.now.UTC(), w.World) {
		if d, ok := a.(reconcile.Drain); ok {
			if err := l.drain(ctx, w, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes the root directory with the cleanup job's own files, then deletes the site.
func (l *siteLoop) sweep(ctx context.Context, site corral.Site) error {
	if err := l.line.open(ctx, site); err != nil {
		return err
	}
	err := l.line.access.Head.Sweep(ctx, site.PackageDigest != "")
	var no *gridsite.Refused
	switch {
	case errors.As(err, &no):
		return l.line.moveSite(ctx, corral.SiteFail, "removing "+site.Root+": "+no.Text)
	case err != nil:
		return fmt.Errorf("removing %s: %w", site.Root, err)
	}
	return l.line.moveSite(ctx, corral.SiteUnstaged, "")
}
