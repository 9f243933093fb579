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

// perform does what was decided: first the cancellations, all together, then the rest in order. What is to end makes
// room for what is to begin, and many cancellations are one command. An error
// means that the site could not be asked or did not answer, or, of kind Conflict, that the world has
// moved on: the actions are decided again later.
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

// act performs one action that is no cancellation. Those of the first switch say themselves what they do, once they do
// it: they may have to wait for their turn for many steps.
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

// submit records the intent, then asks the site. What a site needs before its first job is brought there before the
// intent is recorded: an intent without an answer is looked up at the site, which must be able to know it.
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

// send submits a job whose intent is recorded and records the answer. Without an answer the job stays
// NEW and Decide will have it looked up.
func (l *siteLoop) send(ctx context.Context, w turn, job corral.Job) error {
	ev, err := l.sender.send(ctx, w, job)
	if err != nil || ev.Move == "" {
		return err
	}
	return l.moveJob(ctx, w.now, job, ev)
}

// cancel ends jobs, all at the same time, and returns when the site says that they are gone, or that some must wait for
// a later step. That they are to end is recorded first: should corrald die now, the next one goes on with it, and a job
// that ends meanwhile by itself has been removed, and has not failed.
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

// drain tells the attempt's dispatcher, once in the life of this process: the dispatcher remembers it
// for workers that come back, but not beyond its own end.
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

// drainFromAfar drains what is to be drained of a site that is not reached: dispatchers tell their workers without it.
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

// sweep removes the root directory with the cleanup job's own remains, then forgets the site.
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
