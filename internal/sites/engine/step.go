package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/worldstate"
)

// Stepped is the debug log message for each step of a site's loop, with the attributes commands and took.
const Stepped = "stepped"

// A turn is a site's world in one step, during which the time does not change.
type turn struct {
	reconcile.World
	now time.Time
}

// step observes, decides and acts once and returns the time until the next step. If a site is not reached, actions
// that do not need it are still performed; if it was removed by force, its jobs are given up.
func (l *siteLoop) step(ctx context.Context, now time.Time) (time.Duration, error) {
	world, err := l.load(ctx)
	if err != nil {
		return 0, err
	}
	w, live := turn{world, now}, liveJobs(world)
	if w.Site.State == corral.SiteDeleted && len(live) == 0 {
		return 0, errNothingLeft
	}
	ended := l.e.cfg.Steps.begin(w.Site.ID)
	l.line.begin()
	if err = l.trouble.knock(ctx, w.Site); err == nil {
		w.Site.Credentials, err = l.creds.look(ctx, now, w.Site)
	}
	if err == nil {
		err = l.serve(ctx, w)
	}
	if err == nil {
		err = l.trouble.leave(ctx)
	} else {
		err = errors.Join(err, l.drainFromAfar(ctx, w))
	}
	l.e.lg.Debug(Stepped, "site", l.line.id, "commands", l.line.commands, "took", time.Since(now))
	ended(time.Since(now), err)
	switch {
	case err != nil && w.Site.State == corral.SiteDeleted && ctx.Err() == nil:
		return pollSoon, l.giveUp(ctx, now, live, err)
	case err != nil:
		return 0, err
	case l.line.recorded, l.line.more:
		return pollSoon, nil
	}
	return l.sleep(w), nil
}

// serve observes if it is time for that, decides, acts, and tidies up. The order matters: decisions must use the
// latest observations, and the relay must be running before an attempt is given its address.
func (l *siteLoop) serve(ctx context.Context, w turn) error {
	if live := liveJobs(w.World); len(live) > 0 && !w.now.Before(l.line.pace.next()) {
		if err := l.observe(ctx, w, live); err != nil {
			return err
		}
		if l.line.recorded { // otherwise the world is unchanged
			var err error
			if w.World, err = l.load(ctx); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(l.remains.endProbes(ctx, w.Site), l.stager.look(ctx, w.Site)); err != nil {
		return err
	}
	l.relay.Keep(ctx, w.World, l.trouble.last != "")
	if err := l.perform(ctx, w, reconcile.Decide(w.now.UTC(), w.World)); err != nil {
		return err
	}
	if l.relay.News(w.Site) {
		if err := l.line.write(ctx, func(tx *store.Tx) error { return l.relay.Note(tx, w.World) }); err != nil {
			return err
		}
	}
	return l.remains.forget(ctx, w.now, w.Site)
}

// load reads all records about the site in one transaction and adds the data that the parts remember. This data is
// never needed for a correct decision, only for a better one: without it, for example, a package is checked once more.
func (l *siteLoop) load(ctx context.Context) (reconcile.World, error) {
	var w reconcile.World
	from := time.Now()
	l.e.loading.Lock()
	err := l.line.db.View(ctx, func(tx *store.Tx) (err error) {
		if w, err = worldstate.World(tx, l.line.id); err != nil {
			return err
		}
		if w.Needs, err = needs(tx, w); err == nil && len(w.Needs) > 0 {
			w.Tokens, err = l.tokens.waiting(tx)
		}
		return err
	})
	l.e.loading.Unlock()
	l.line.pace.load = time.Since(from)
	if err != nil {
		return w, fmt.Errorf("loading site %d: %w", l.line.id, err)
	}
	if w.Installed.Newer, err = l.stager.delivery.Newer(ctx, w.Site); err != nil {
		return w, err
	}
	w.Lifetimes, w.Installed.Missed, w.Installed.Lost = l.e.cfg.Tokens, l.stager.missed, l.stager.lost
	w.Hopeless, w.Site.Credentials = l.watch.hopeless, l.creds.watch.Known()
	w.NoRelay = l.relay.Lacks(w)
	return w, nil
}

// needs returns the needs of the HTCondor clusters' glideins, by cluster.
func needs(tx *store.Tx, w reconcile.World) (map[corral.ClusterID]reconcile.Need, error) {
	all := map[corral.ClusterID]reconcile.Need{}
	seen := map[corral.ClusterID]bool{}
	for _, g := range w.Glideins {
		if seen[g.Cluster] {
			continue
		}
		seen[g.Cluster] = true
		cluster, err := tx.Cluster(g.Cluster)
		if err == nil && cluster.Kind == corral.Condor {
			all[g.Cluster], err = delivery.NeedOf(tx, w.Site, cluster)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// liveJobs lists the jobs that the site may still have: its own jobs and the attempts of its glideins.
func liveJobs(w reconcile.World) []corral.Job {
	var live []corral.Job
	for _, j := range w.Jobs {
		if j.Live() {
			live = append(live, j)
		}
	}
	for _, g := range w.Glideins {
		live = append(live, g.Live()...)
	}
	return live
}

// observe polls the live jobs in one round trip and records the changes. For each job there is one sighting, from
// which reconcile derives events: the batch system's status, the job's own report, and how long it has been missing.
// Nothing is concluded from a failed poll.
func (l *siteLoop) observe(ctx context.Context, w turn, live []corral.Job) error {
	if err := l.line.open(ctx, w.Site); err != nil {
		return err
	}
	known, err := l.watch.poll(ctx, w, live)
	if err != nil {
		return fmt.Errorf("polling jobs: %w", err)
	}
	if err := l.watch.prune(ctx, w.now, live, known); err != nil {
		return err
	}
	seen, err := l.watch.sightings(ctx, w.now, live, known)
	if err != nil {
		return err
	}
	for _, j := range live {
		s, ok := seen[j.Tag]
		if !ok { // the job has ended, and its output is read in a later step
			continue
		}
		s.Overdue, s.Hopeless = w.Overdue(j)
		for _, ev := range reconcile.Events(j, s, w.now.UTC()) { // each is one transaction, including its history entry
			if err := l.moveJob(ctx, w.now, j, ev); err != nil {
				return err
			}
		}
	}
	if err := l.watch.noteWaits(ctx, w.now, live, known); err != nil {
		return err
	}
	return l.watch.noteWorkers(ctx, w.Glideins, live)
}

// moveJob records a move of a job and, for its end, the contents of its report, in one transaction: a history never
// shows an end without the reasons. The parts forget the job or learn from it only after that; if the transaction fails
// they are unchanged, and the same move is found again at the next poll.
func (l *siteLoop) moveJob(ctx context.Context, now time.Time, j corral.Job, ev corral.JobEvent) error {
	report := l.watch.reports[j.Tag]
	err := l.line.write(ctx, func(tx *store.Tx) error {
		var err error
		switch {
		case ev.Move != corral.JobEnd:
		case j.Kind == corral.SetupJob:
			err = l.stager.delivery.Reported(tx, report.Tries)
		case j.Kind == corral.PilotJob:
			err = noteLog(tx, j, report.Log)
		}
		if err != nil {
			return err
		}
		moved, err := tx.MoveJob(j.ID, ev)
		j.StartedAt, j.EndedAt = moved.StartedAt, moved.EndedAt
		return err
	})
	if err != nil {
		return fmt.Errorf("recording %s of %s: %w", ev.Move, j.Name(), err)
	}
	if ev.Move == corral.JobEnd {
		l.stager.learn(j, ev, report)
		l.remains.ended = true
		l.watch.drop(j)
		l.ends.drop(j)
		l.tokens.drop(j)
		delete(l.told, j.ID)
		if ev.Gone {
			l.e.clusters.Ended(j.Tag)
		}
	}
	l.line.pace.busy(now)
	l.e.lg.Info("job moved",
		"job", j.Tag, "name", j.Name(), "move", ev.Move, "outcome", ev.Outcome, "reason", ev.Reason)
	return nil
}

// giveUp ends the jobs of a site that was removed by force and does not respond. Pilots that still run there are no
// longer admitted.
func (l *siteLoop) giveUp(ctx context.Context, now time.Time, live []corral.Job, why error) error {
	for _, j := range live {
		err := l.moveJob(ctx, now, j, corral.JobEvent{
			Move: corral.JobEnd, Outcome: corral.OutcomeLost, Transient: true,
			Reason: "its site was removed by force and may still run it: " + why.Error(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expect returns the expectation for the site. A job that is unknown to the site is polled for again soon, because only
// the time for which it has been missing shows whether it is lost.
func (l *siteLoop) expect(w turn) expectation {
	e := expect(w.now, w.World)
	e.soon = e.soon || len(l.watch.missing) > 0
	return e
}

// sleep returns how long the loop may wait: until the next poll, or until something is due. Any new record ends the
// wait earlier, so no other check is needed.
func (l *siteLoop) sleep(w turn) time.Duration {
	wait := l.creds.rest(w.now, w.Site)
	if len(liveJobs(w.World)) > 0 {
		l.line.pace.expected = l.expect(w)
		wait = min(wait, l.line.pace.next().Sub(w.now))
	}
	if due := reconcile.Due(w.now.UTC(), w.World); !due.IsZero() {
		wait = min(wait, due.Sub(w.now))
	}
	return max(wait, pollSoon)
}
