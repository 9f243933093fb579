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

// act performs one action. An error means that the site could not be asked or did not answer: the
// action is decided anew later.
func (l *siteLoop) act(ctx context.Context, w reconcile.World, a reconcile.Action) error {
	if _, quiet := a.(reconcile.Drain); !quiet {
		l.e.lg.Info("acting", "site", w.Site.Name, "action", fmt.Sprintf("%T", a), "why", a.Why())
	}
	switch a := a.(type) {
	case reconcile.Submit:
		return l.submit(ctx, w, a)
	case reconcile.Resume:
		return l.resume(ctx, w, a.Job)
	case reconcile.Drain:
		return l.drain(ctx, a.Job)
	case reconcile.Cancel:
		return l.cancel(ctx, w, a)
	case reconcile.AskGlidein:
		return l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.AskGlidein(a.Glidein, a.Ask, a.Reason)
			return err
		})
	case reconcile.Settle:
		return l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.SettleGlidein(a.Glidein)
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
	return l.e.db.Write(ctx, Actor, fn)
}

func (l *siteLoop) moveSite(ctx context.Context, move corral.SiteMove, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error {
		_, err := tx.MoveSite(l.id, move, reason)
		return err
	})
}

// submit records the intent, then asks the site.
func (l *siteLoop) submit(ctx context.Context, w reconcile.World, a reconcile.Submit) error {
	site, err := l.prepare(ctx, w.Site, a)
	if err != nil {
		return err
	}
	job := corral.Job{Kind: a.Kind, Site: l.id, Glidein: a.Glidein, Tag: newTag(a.Kind)}
	if g := find(w.Glideins, a.Glidein); g != nil {
		job.TokenDigest = l.e.cfg.Key.Token(job.Tag).Digest()
		job.TokenEndsAt = time.Now().UTC().Add(queueTimeout + time.Duration(g.Walltime))
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
	spec, err := l.spec(ctx, w, job)
	if err != nil {
		return err
	}
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	id, err := l.batch.Submit(ctx, spec)
	var refused *gridsite.Refused
	switch {
	case errors.As(err, &refused):
		return l.moveJob(ctx, job, corral.JobEvent{
			Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeFailed,
			Transient: refused.Transient, Reason: "the site refused it: " + refused.Text,
		})
	case err != nil:
		return fmt.Errorf("submitting %s: %w", job.Name(), err)
	}
	return l.moveJob(ctx, job, corral.JobEvent{Move: corral.JobSubmit, At: time.Now().UTC(), SiteJobID: id})
}

// resume looks an unanswered submission up by its tag. What the site knows is adopted; what it does
// not know for longer than it may hide a job is submitted again, under the same tag.
func (l *siteLoop) resume(ctx context.Context, w reconcile.World, job corral.Job) error {
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	known, err := l.batch.Poll(ctx, []string{job.Tag})
	if err != nil {
		return fmt.Errorf("looking up %s: %w", job.Tag, err)
	}
	if st, ok := known[job.Tag]; ok {
		return l.moveJob(ctx, job, corral.JobEvent{
			Move: corral.JobSubmit, At: time.Now().UTC(), SiteJobID: st.ID, Reason: "adopted: found by its tag",
		})
	}
	if time.Since(job.CreatedAt) < visibility {
		return nil
	}
	return l.send(ctx, w, job)
}

// drain tells the attempt's workers; told again each time, since a restarted dispatcher has forgotten.
func (l *siteLoop) drain(ctx context.Context, job corral.Job) error {
	if job.Asked != corral.AskDrain {
		err := l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.AskJob(job.ID, corral.AskDrain, "asked to drain")
			return err
		})
		if err != nil {
			return err
		}
	}
	l.e.clusters.drain(job.ID)
	return nil
}

func (l *siteLoop) cancel(ctx context.Context, w reconcile.World, a reconcile.Cancel) error {
	if a.Job.Asked != corral.AskCancel {
		err := l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.AskJob(a.Job.ID, corral.AskCancel, a.Reason)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	if err := l.batch.Cancel(ctx, a.Job.Tag, cancelGrace); err != nil {
		return fmt.Errorf("cancelling %s: %w", a.Job.Name(), err)
	}
	l.busy(time.Now())
	return l.neverStarted(ctx, a.Job)
}

// neverStarted ends a cancelled job that the site never knew: no poll will.
func (l *siteLoop) neverStarted(ctx context.Context, job corral.Job) error {
	known, err := l.batch.Poll(ctx, []string{job.Tag})
	if err != nil {
		return fmt.Errorf("looking up %s: %w", job.Tag, err)
	}
	if _, ok := known[job.Tag]; ok {
		return nil
	}
	return l.moveJob(ctx, job, corral.JobEvent{
		Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeRemoved, Reason: "cancelled; the site does not know it",
	})
}

// sweep removes the root directory with the cleanup job's own remains, then forgets the site.
func (l *siteLoop) sweep(ctx context.Context, site corral.Site) error {
	if err := l.open(ctx, site); err != nil {
		return err
	}
	res, err := l.conn.Run(ctx, gridsite.Command{Argv: []string{"rm", "-rf", "--", site.Root}})
	switch {
	case err != nil:
		return fmt.Errorf("removing %s: %w", site.Root, err)
	case res.Exit != 0:
		return l.moveSite(ctx, corral.SiteFail, "removing "+site.Root+": "+lastLine(res.Stderr))
	}
	return l.moveSite(ctx, corral.SiteUnstaged, "")
}

// open connects to the site unless that is done.
func (l *siteLoop) open(ctx context.Context, site corral.Site) error {
	if l.conn != nil {
		return nil
	}
	conn, batch, err := l.e.open(ctx, site)
	if err != nil {
		return fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	l.conn, l.batch = conn, batch
	return nil
}

func (l *siteLoop) close() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing was left to be written
		l.conn, l.batch = nil, nil
	}
}

// Open reaches a site and its batch system.
func Open(ctx context.Context, site corral.Site) (gridsite.Conn, gridsite.Batch, error) {
	conn, err := gridsite.Dial(ctx, site.Contact)
	if err != nil {
		return nil, nil, err
	}
	return conn, gridsite.NewFork(conn, site.Root), nil
}

// read returns a file of the job's directory, nil if there is none.
func (l *siteLoop) read(ctx context.Context, tag, name string) ([]byte, error) {
	b, err := l.batch.Read(ctx, tag, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", name, tag, err)
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
