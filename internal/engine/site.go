package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/recorded"
	"github.com/corral-pilot/corral/internal/store"
)

// errNothingLeft ends the loop of a site that is deleted and has no job any more.
var errNothingLeft = errors.New("nothing left to do")

// A siteLoop serves one site. Its fields belong to its goroutine.
type siteLoop struct {
	e  *Engine
	id corral.SiteID

	access gridsite.Access // without Head while closed

	recorded     bool      // in the present step, so that more may be due at once
	commands     int       // run at the site in the present step
	more         bool      // than the present step has commands for
	polledAt     time.Time // in the present step; zero: not
	busyUntil    time.Time
	lastPoll     time.Time // zero: the next step polls
	pollTook     time.Duration
	missing      map[string]time.Time       // :: tag → since when the site has not known it
	stuck        map[string]retry           // :: tag of a job that does not end → when it is asked to again
	pruned       map[string]time.Time       // :: the site's id of a job that came in twice → when it was cancelled last
	worked       map[string]time.Time       // :: host → when a worker registered from it last, as is recorded
	hopeless     map[corral.JobID]time.Time // :: job that waits → since when the site has said that it never starts
	told         map[corral.JobID]bool      // attempts whose dispatcher was asked to drain them
	reports      map[string]order.Report    // :: tag → what an ended job said, until that is recorded
	ended        bool                       // an attempt has, or may have before this loop began
	forgotten    map[string]bool            // :: tag of an old attempt → the site was told to forget it
	unreached    bool                       // the last setup job got no answer from any mirror
	placed       map[corral.JobID]time.Time // :: attempt → since when it has the pool token that was made last
	tokens       map[corral.ClusterID]retry // whose pool gave no token when it was asked last
	missed       map[string]time.Time       // :: digest of a package → when a pilot began that did not find it installed
	probesEnded  bool                       // those of an earlier corrald
	relay        *siteRelay                 // nil: no attempt needs one
	relayAwaited bool                       // by an attempt that is about to be submitted
	trouble      time.Duration              // present back-off
	lastTrouble  string
	lost         bool // the site's own package; until it was installed again
	notFound     bool // an attempt has ended as if its program was not there
}

func newSiteLoop(e *Engine, id corral.SiteID) *siteLoop {
	return &siteLoop{
		e: e, id: id, ended: true,
		missing: map[string]time.Time{},
		stuck:   map[string]retry{},
		pruned:  map[string]time.Time{},
		worked:  map[string]time.Time{},
		told:    map[corral.JobID]bool{},
		reports: map[string]order.Report{},
		placed:  map[corral.JobID]time.Time{},
		tokens:  map[corral.ClusterID]retry{},
		missed:  map[string]time.Time{},
	}
}

// Stepped is what the debug log says of each step of a site's loop, with commands and took.
const Stepped = "stepped"

// step observes, decides and acts once and returns how long nothing needs to be looked at.
func (l *siteLoop) step(ctx context.Context, now time.Time) (time.Duration, error) {
	w, err := l.load(ctx)
	if err != nil {
		return 0, err
	}
	live := liveJobs(w)
	if w.Site.State == corral.SiteDeleted && len(live) == 0 {
		return 0, errNothingLeft
	}
	l.recorded, l.more, l.commands, l.polledAt = false, false, 0, time.Time{}
	if err = l.knock(ctx, w.Site); err == nil {
		err = l.serve(ctx, now, w)
	}
	if err == nil {
		err = l.outOfTrouble(ctx)
	} else {
		err = errors.Join(err, l.drainFromAfar(ctx, now, w))
	}
	l.e.lg.Debug(Stepped, "site", l.id, "commands", l.commands, "took", time.Since(now))
	switch {
	case err != nil && w.Site.State == corral.SiteDeleted && ctx.Err() == nil:
		return pollSoon, l.giveUp(ctx, live, err)
	case err != nil:
		return 0, err
	case l.recorded, l.more:
		return pollSoon, nil
	}
	return l.sleep(now, w), nil
}

// serve observes if it is time for that, decides, acts, and tidies up.
func (l *siteLoop) serve(ctx context.Context, now time.Time, w reconcile.World) error {
	if live := liveJobs(w); len(live) > 0 && !now.Before(l.nextPoll()) {
		if err := l.observe(ctx, w, live); err != nil {
			return err
		}
		l.lastPoll = now
		if l.recorded { // else the world is as it was
			var err error
			if w, err = l.load(ctx); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(l.endProbes(ctx, w.Site), l.lookForPackage(ctx, w.Site)); err != nil {
		return err
	}
	l.keepRelay(ctx, w)
	if err := l.perform(ctx, w, reconcile.Decide(now.UTC(), w)); err != nil {
		return err
	}
	if err := l.noteRelay(ctx, w); err != nil {
		return err
	}
	return l.forget(ctx, w.Site)
}

// giveUp ends the jobs of a site that was removed by force and does not do what it is asked. What it
// keeps of them cannot come in any more.
func (l *siteLoop) giveUp(ctx context.Context, live []corral.Job, why error) error {
	for _, j := range live {
		err := l.moveJob(ctx, j, corral.JobEvent{
			Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeLost, Transient: true,
			Reason: "its site was removed by force, and may keep it: " + why.Error(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sleep returns how long the loop may wait: until the next poll, or until something is due.
func (l *siteLoop) sleep(now time.Time, w reconcile.World) time.Duration {
	wait := pollNothing
	if len(liveJobs(w)) > 0 {
		wait = l.nextPoll().Sub(now)
	}
	if due := reconcile.Due(now.UTC(), w); !due.IsZero() {
		wait = min(wait, due.Sub(now))
	}
	return max(wait, pollSoon)
}

// nextPoll is when the jobs are to be looked at next.
func (l *siteLoop) nextPoll() time.Time {
	pace := pollSteady
	if l.lastPoll.Before(l.busyUntil) {
		pace = pollBusy
	}
	return l.lastPoll.Add(max(pace, pollShare*l.pollTook))
}

// busy makes the loop poll soon, and then often for a while.
func (l *siteLoop) busy(now time.Time) { l.busyUntil = now.Add(busyFor) }

// load reads everything recorded about the site in one transaction.
func (l *siteLoop) load(ctx context.Context) (reconcile.World, error) {
	var w reconcile.World
	err := l.e.db.View(ctx, func(tx *store.Tx) (err error) {
		if w, err = recorded.World(tx, l.id); err != nil {
			return err
		}
		return l.loadNeeds(tx, &w)
	})
	if err != nil {
		return w, fmt.Errorf("loading site %d: %w", l.id, err)
	}
	w.Hopeless, w.Lost, w.NoRelay = l.hopeless, l.lost, l.relayLacks(w)
	return w, nil
}

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

// observe polls the live jobs in one round trip and records what changed.
func (l *siteLoop) observe(ctx context.Context, w reconcile.World, live []corral.Job) error {
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	begin := time.Now()
	statuses, err := l.poll(ctx, w.Site, live)
	if err != nil {
		return fmt.Errorf("polling jobs: %w", err)
	}
	l.pollTook = time.Since(begin)
	l.polledAt = time.Now().UTC()
	if err := l.prune(ctx, live, statuses); err != nil {
		return err
	}
	left, err := l.lastWords(ctx, live, statuses)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	for _, j := range live {
		if _, read := left[j.Tag]; !read && statuses[j.Tag].Phase == gridsite.Ended {
			continue
		}
		s := l.sighting(j, statuses, left[j.Tag], now)
		s.Overdue, s.Hopeless = w.Overdue(j)
		if err := l.record(ctx, j, reconcile.Events(j, s, now)); err != nil {
			return err
		}
	}
	if err := l.noteWaits(ctx, live, statuses, now); err != nil {
		return err
	}
	return l.noteWorkers(ctx, w.Glideins, live)
}

// poll asks each of the site's batch systems that has some of the jobs, in one round trip each.
func (l *siteLoop) poll(ctx context.Context, site corral.Site, live []corral.Job) (map[string]gridsite.JobStatus, error) {
	var pilots, others []string
	for _, j := range live {
		if j.Kind == corral.PilotJob || site.HeadBatch == site.Batch {
			pilots = append(pilots, j.Tag)
		} else {
			others = append(others, j.Tag)
		}
	}
	statuses := map[string]gridsite.JobStatus{}
	for _, part := range []struct {
		batch gridsite.Batch
		tags  []string
	}{{l.access.Pilots, pilots}, {l.access.Setup, others}} {
		if len(part.tags) == 0 {
			continue
		}
		l.commands++
		known, err := part.batch.Poll(ctx, part.tags)
		if err != nil {
			return nil, err
		}
		maps.Copy(statuses, known)
	}
	return statuses, nil
}

// sighting gathers what is known of j. Of one that has ended it needs what that left behind.
func (l *siteLoop) sighting(j corral.Job, statuses map[string]gridsite.JobStatus, left words, now time.Time) reconcile.Sighting {
	st, known := statuses[j.Tag]
	if !known {
		if l.missing[j.Tag].IsZero() {
			l.missing[j.Tag] = now
		}
		return reconcile.Sighting{Missing: l.missing[j.Tag], Visibility: visibility}
	}
	delete(l.missing, j.Tag)
	s := reconcile.Sighting{
		Known:     true,
		ID:        st.ID,
		Phase:     reconcile.Phase(st.Phase),
		Exit:      st.Exit,
		Killed:    reconcile.Killed(st.Killed),
		StartedAt: st.StartedAt.UTC(),
		EndedAt:   st.EndedAt.UTC(),
	}
	if st.Phase == gridsite.Ended {
		s.Report, s.Stderr = l.decode(j, left)
		s.Node = nodeName(string(left.node))
	}
	return s
}

// record writes the moves of one job; each is a transaction of its own with its history row.
func (l *siteLoop) record(ctx context.Context, j corral.Job, events []corral.JobEvent) error {
	for _, ev := range events {
		if err := l.moveJob(ctx, j, ev); err != nil {
			return err
		}
	}
	return nil
}

func (l *siteLoop) moveJob(ctx context.Context, j corral.Job, ev corral.JobEvent) error {
	err := l.write(ctx, func(tx *store.Tx) error {
		if ev.Move == corral.JobEnd {
			if err := errors.Join(l.reportedTries(tx, j), l.reportedLog(tx, j)); err != nil {
				return err
			}
		}
		moved, err := tx.MoveJob(j.ID, ev)
		j.StartedAt, j.EndedAt = moved.StartedAt, moved.EndedAt
		return err
	})
	if err != nil {
		return fmt.Errorf("recording %s of %s: %w", ev.Move, j.Name(), err)
	}
	if ev.Move == corral.JobEnd {
		l.ended = true
		l.notFound = l.notFound || j.Kind == corral.PilotJob && ev.Outcome == corral.OutcomeFailed && ev.ExitStatus != nil && *ev.ExitStatus == exitNotFound
		if j.Kind == corral.SetupJob && j.Package == "" && ev.Outcome == corral.OutcomeDone {
			l.lost = false
		}
		l.drop(j)
		l.learn(j)
	}
	l.busy(time.Now())
	l.e.lg.Info("job moved", "job", j.Tag, "name", j.Name(), "move", ev.Move, "outcome", ev.Outcome, "reason", ev.Reason)
	return nil
}

// drop forgets what was remembered of a job while it was alive.
func (l *siteLoop) drop(j corral.Job) {
	delete(l.missing, j.Tag)
	delete(l.stuck, j.Tag)
	delete(l.told, j.ID)
	delete(l.placed, j.ID)
}

// noteWorkers records how many workers of each attempt are registered, where it is more than ever, and on which hosts some
// came to life.
func (l *siteLoop) noteWorkers(ctx context.Context, glideins []corral.Glidein, live []corral.Job) error {
	registered := l.e.clusters.registered(glideins)
	for _, j := range live {
		n, hosts := len(registered[j.ID]), l.newHosts(registered[j.ID])
		if j.Kind != corral.PilotJob || n <= j.Workers && len(hosts) == 0 {
			continue
		}
		err := l.write(ctx, func(tx *store.Tx) error {
			_, err := tx.NoteWorkers(j.ID, n)
			return errors.Join(err, tx.NoteHosts(l.id, hosts))
		})
		if err != nil {
			return fmt.Errorf("recording workers of %s: %w", j.Name(), err)
		}
		maps.Copy(l.worked, hosts)
	}
	return nil
}
