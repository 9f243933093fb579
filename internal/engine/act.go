package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
)

// perform does what was decided: first the cancellations, all together, then the rest in order. An error
// means that the site could not be asked or did not answer, or, of kind Conflict, that the world has
// moved on: the actions are decided anew later.
func (l *siteLoop) perform(ctx context.Context, w reconcile.World, actions []reconcile.Action) error {
	var cancels []reconcile.Cancel
	var rest []reconcile.Action
	for _, a := range actions {
		if c, ok := a.(reconcile.Cancel); ok {
			cancels = append(cancels, c)
		} else {
			rest = append(rest, a)
		}
	}
	if err := l.cancel(ctx, w.Site, cancels); err != nil {
		return err
	}
	for _, a := range rest {
		if l.awaitsRelay(ctx, w, a) {
			continue
		}
		if err := l.act(ctx, w, a); err != nil {
			return err
		}
	}
	return nil
}

// log says what is done. What is asked of a job goes into the log when it is recorded, not each time.
func (l *siteLoop) log(site corral.Site, a reconcile.Action) {
	l.e.lg.Info("acting", "site", site.Name, "action", fmt.Sprintf("%T", a), "why", a.Why())
}

// act performs one action that is no cancellation.
func (l *siteLoop) act(ctx context.Context, w reconcile.World, a reconcile.Action) error {
	switch a := a.(type) {
	case reconcile.Resume:
		return l.resume(ctx, w, a)
	case reconcile.Drain:
		return l.drain(ctx, w, a)
	case reconcile.Renew:
		return l.renew(ctx, w, a)
	}
	l.log(w.Site, a)
	switch a := a.(type) {
	case reconcile.Submit:
		return l.submit(ctx, w, a)
	case reconcile.AskGlidein:
		return l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.AskGlidein(a.Glidein, a.Ask, a.Reason)
			return err
		})
	case reconcile.Settle:
		return l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.SettleGlidein(a.Glidein, a.Lack)
			return err
		})
	case reconcile.MoveSite:
		return l.moveSite(ctx, a.Move, a.Reason)
	case reconcile.Sweep:
		return l.sweep(ctx, w.Site)
	}
	return fmt.Errorf("action %T has no effect", a) // unreachable: the switch lists every action
}

func (l *siteLoop) write(ctx context.Context, fn func(*store.Tx) error) error {
	err := l.e.db.Write(ctx, Actor, fn)
	l.recorded = l.recorded || err == nil
	return err
}

func (l *siteLoop) moveSite(ctx context.Context, move corral.SiteMove, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error {
		_, err := tx.MoveSite(l.id, move, reason)
		return err
	})
}

// submit records the intent, then asks the site.
func (l *siteLoop) submit(ctx context.Context, w reconcile.World, a reconcile.Submit) error {
	if !l.take() {
		return nil
	}
	site, err := l.prepare(ctx, w.Site, a)
	if err != nil {
		return l.unusable(ctx, err)
	}
	job := corral.Job{Kind: a.Kind, Site: l.id, Glidein: a.Glidein, Package: a.Package, Tag: newTag(a.Kind)}
	if g := find(w.Glideins, a.Glidein); g != nil {
		job.TokenDigest = l.e.cfg.Key.Token(job.Tag).Digest()
		asked := corral.Job{CreatedAt: time.Now().UTC()}
		job.TokenEndsAt = g.LatestStart(asked).Add(time.Duration(g.Walltime) + l.e.cfg.Tokens.Margin)
	}
	err = l.write(ctx, func(tx *store.Tx) (err error) {
		if a.Move != "" {
			if _, err := tx.MoveSite(l.id, a.Move, a.Reason); err != nil {
				return err
			}
		}
		job, err = tx.CreateJob(job)
		return err
	})
	if err != nil {
		return fmt.Errorf("recording the intent of a %s job: %w", a.Kind, err)
	}
	w.Site = site
	return l.send(ctx, w, job)
}

// send submits a job whose intent is recorded and records the answer. Without an answer the job stays
// NEW and Decide will have it looked up.
func (l *siteLoop) send(ctx context.Context, w reconcile.World, job corral.Job) error {
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	spec, err := l.spec(ctx, w, job)
	if err != nil {
		return l.unsendable(ctx, job, err)
	}
	if err := l.avoid(ctx, w.Site, job, &spec); err != nil {
		return err
	}
	id, err := l.submitJob(ctx, job, spec)
	if refused := refusal(err); refused != nil {
		return l.moveJob(ctx, job, corral.JobEvent{
			Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeFailed,
			Transient: refused.Transient, Reason: "the site refused it: " + refused.Text,
		})
	}
	if err != nil {
		return fmt.Errorf("submitting %s: %w", job.Name(), err)
	}
	return l.moveJob(ctx, job, corral.JobEvent{Move: corral.JobSubmit, At: time.Now().UTC(), SiteJobID: id})
}

// refusal returns the definite no that err is, or nil. What the batch system's rules forbid it refuses
// for good.
func refusal(err error) *gridsite.Refused {
	var refused *gridsite.Refused
	if !errors.As(err, &refused) && corral.KindOf(err) == corral.Invalid {
		refused = &gridsite.Refused{Text: err.Error()}
	}
	return refused
}

// unansweredSince is since when the site has had time to show a job.
func (l *siteLoop) unansweredSince(job corral.Job) time.Time {
	if missing, ok := l.missing[job.Tag]; ok && missing.Before(job.CreatedAt) { // the clock was set back
		return missing
	}
	return job.CreatedAt
}

// resume takes up an unanswered submission, once the site cannot hide it any longer. What the step's poll knew of it was
// adopted already; what it did not know is submitted again, under the same tag.
func (l *siteLoop) resume(ctx context.Context, w reconcile.World, a reconcile.Resume) error {
	job, since := a.Job, l.unansweredSince(a.Job)
	switch {
	case time.Since(since) < visibility || l.hasNoToken(w, job):
		return nil // each poll adopts it if it shows up
	case l.polledAt.Sub(since) < visibility: // look first
		l.lastPoll, l.more = time.Time{}, true
		return nil
	case !l.take():
		return nil
	}
	l.log(w.Site, a)
	return l.send(ctx, w, job)
}

// drain tells the attempt's dispatcher, once in the life of this process: the dispatcher remembers it
// for who comes back, but not beyond its own end.
func (l *siteLoop) drain(ctx context.Context, w reconcile.World, a reconcile.Drain) error {
	if err := l.ask(ctx, w.Site, a.Job, corral.AskDrain, a); err != nil {
		return err
	}
	if g := find(w.Glideins, a.Job.Glidein); g != nil && !l.told[a.Job.ID] {
		l.told[a.Job.ID] = true
		l.e.clusters.drain(g.Cluster, a.Job.ID)
	}
	return nil
}

// drainFromAfar drains what is to be drained of a site that is not reached: dispatchers tell their workers without it.
func (l *siteLoop) drainFromAfar(ctx context.Context, now time.Time, w reconcile.World) error {
	for _, a := range reconcile.Decide(now.UTC(), w) {
		if d, ok := a.(reconcile.Drain); ok {
			if err := l.drain(ctx, w, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask records what a job is asked, if it was not before; it is polled soon then.
func (l *siteLoop) ask(ctx context.Context, site corral.Site, job corral.Job, ask corral.Ask, a reconcile.Action) error {
	if job.Asked == ask {
		return nil
	}
	l.log(site, a)
	l.busy(time.Now())
	return l.write(ctx, func(tx *store.Tx) error {
		_, err := tx.AskJob(job.ID, ask, a.Why())
		return err
	})
}

// sweep removes the root directory with the cleanup job's own remains, then forgets the site.
func (l *siteLoop) sweep(ctx context.Context, site corral.Site) error {
	if err := l.open(ctx, site); err != nil {
		return err
	}
	err := l.access.Head.Sweep(ctx, site.PackageDigest != "")
	var no *gridsite.Refused
	switch {
	case errors.As(err, &no):
		return l.moveSite(ctx, corral.SiteFail, "removing "+site.Root+": "+no.Text)
	case err != nil:
		return fmt.Errorf("removing %s: %w", site.Root, err)
	}
	return l.moveSite(ctx, corral.SiteUnstaged, "")
}

// open connects to the site unless that is done.
func (l *siteLoop) open(ctx context.Context, site corral.Site) error {
	if l.access.Head != nil {
		return nil
	}
	access, err := l.e.open(ctx, site)
	if err != nil {
		return fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	l.access = access
	return nil
}

func (l *siteLoop) close() {
	if l.access.Head != nil {
		_ = l.access.Head.Close() // nothing was left to be written
		l.access = gridsite.Access{}
	}
}

// read returns a file of the job's directory, nil if there is none.
func (l *siteLoop) read(ctx context.Context, job corral.Job, name string) ([]byte, error) {
	b, err := l.access.Batch(job.Kind).Read(ctx, job.Tag, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", name, job.Tag, err)
	}
	return b, nil
}

// lastLine returns the last line of b that is not empty, shortened to what fits a reason.
func lastLine(b []byte) string {
	const most = 300
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if len(line) > most {
		line = line[:most] + "…"
	}
	return strings.ToValidUTF8(line, "?")
}

func find(glideins []corral.Glidein, id corral.GlideinID) *corral.Glidein {
	for i := range glideins {
		if glideins[i].ID == id {
			return &glideins[i]
		}
	}
	return nil
}
