package engine

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/siterelay"
	"github.com/corral-pilot/corral/internal/store"
)

// errNothingLeft ends the loop of a site that is deleted and has no job any more.
var errNothingLeft = errors.New("nothing left to do")

// A siteLoop serves one site. All of it belongs to one goroutine, that of run. It is glue: it knows in which order the
// parts do theirs, and what is recorded; what each of them remembers is its own business.
type siteLoop struct {
	e       *Engine
	line    *line
	watch   *watch
	sender  *sender
	stager  *stager
	tokens  *tokens
	ends    *ends
	remains *remains
	trouble *trouble
	relay   *siterelay.Relay
	told    map[corral.JobID]bool // attempts whose dispatcher was asked to drain them
}

func newSiteLoop(e *Engine, id corral.SiteID) *siteLoop {
	way := &line{lg: e.lg, db: e.db, reach: e.cfg.Reach, id: id}
	l := &siteLoop{
		e:       e,
		line:    way,
		watch:   newWatch(way, e.clusters),
		stager:  newStager(way, e.cfg),
		tokens:  newTokens(way, e.clusters, e.cfg.Tokens),
		ends:    &ends{line: way, stuck: map[string]retry{}},
		remains: &remains{line: way, prober: e.cfg.Prober, ended: true},
		trouble: &trouble{line: way},
		relay: siterelay.New(siterelay.Config{
			Log: e.lg, Reach: e.cfg.Reach, Clusters: e.clusters, Address: e.cfg.Address,
		}),
		told: map[corral.JobID]bool{},
	}
	l.sender = &sender{
		line: way, cfg: e.cfg, watch: l.watch, stager: l.stager, tokens: l.tokens, relay: l.relay,
	}
	return l
}

// alarms are what ends a loop's rest; they are taken before the step, so that nothing is missed.
type alarms struct{ recorded, moved, loggedIn, registered, lost <-chan struct{} }

func (l *siteLoop) alarms() alarms {
	return alarms{
		recorded:   l.e.db.Changed(store.Subject{Object: corral.ObjectSite, ID: int64(l.line.id)}),
		moved:      l.e.db.Changed(store.Subject{Object: corral.ObjectCluster}),
		loggedIn:   l.e.cfg.Reach.LoggedIn(),
		registered: l.e.clusters.Changed(),
		lost:       l.e.cfg.Reach.Lost(l.line.id),
	}
}

// run steps until ctx ends or the site needs nothing any more. A step that fails leaves the site alone for a while,
// since an error means that the site was not reached or did not answer; but a Conflict means that a person, or a pilot,
// was quicker, and the world is looked at again at once.
func (l *siteLoop) run(ctx context.Context) {
	defer l.line.close()
	defer l.relay.End()
	for {
		wake := l.alarms()
		next, err := l.step(ctx, time.Now())
		switch {
		case errors.Is(err, errNothingLeft):
			l.relay.End()
			l.e.cfg.Reach.Leave(l.line.id)
			return
		case ctx.Err() != nil:
			return
		case corral.KindOf(err) == corral.Conflict: // somebody changed what was just decided about
			l.e.lg.Info("deciding again", "site", l.line.id, "err", err)
			next = pollBusy
		case err != nil:
			next = l.trouble.enter(ctx, time.Now(), err)
			wake = alarms{loggedIn: wake.loggedIn} // only time helps now, or a person
		case wake.lost == nil: // the step may have made a connection
			wake.lost = l.e.cfg.Reach.Lost(l.line.id)
		}
		l.rest(ctx, next, wake)
	}
}

// rest waits for so long, or until something is recorded. That workers came or went is seen at the next poll, which is
// due sooner then: where hundreds do, each would cost a poll.
func (l *siteLoop) rest(ctx context.Context, most time.Duration, wake alarms) {
	end := time.Now().Add(most)
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case <-wake.registered:
			now := time.Now()
			l.line.pace.busy(now)
			timer.Reset(min(end.Sub(now), max(l.line.pace.next().Sub(now), pollSoon)))
			wake.registered = nil
			continue
		case <-ctx.Done():
		case <-wake.recorded:
		case <-wake.moved:
		case <-wake.loggedIn:
		case <-wake.lost:
		case <-timer.C:
		}
		return
	}
}

// Pace of a site's loop. A poll costs a process or a round trip at the site, so it happens often only
// while something is about to change.
const (
	pollSoon    = 50 * time.Millisecond // after an action, or when workers came or went
	pollBusy    = 200 * time.Millisecond
	pollSteady  = 2 * time.Second
	pollNothing = time.Minute     // nothing is to be polled; what happens ends the wait sooner
	busyFor     = 5 * time.Second // how long after a change the pace stays busy

	// A poll takes at most one of pollShare parts of the time: hundreds of jobs on a busy machine leave none to spare.
	pollShare = 4
)

// A pace says when a site's jobs are looked at. Whatever happens makes the loop busy for a while, since more is likely
// to follow: a job that was submitted starts, one that ended is followed by another.
type pace struct {
	busyUntil time.Time
	lastPoll  time.Time     // zero: the next step polls
	took      time.Duration // the last poll
}

// busy makes the loop poll soon, and then often for a while.
func (p *pace) busy(now time.Time) { p.busyUntil = now.Add(busyFor) }

// polled notes a poll, and how long it took.
func (p *pace) polled(now time.Time, took time.Duration) { p.lastPoll, p.took = now, took }

// lookAgain makes the next step poll: what it would decide about is known to have changed.
func (p *pace) lookAgain() { p.lastPoll = time.Time{} }

// next is when the jobs are to be looked at next.
func (p *pace) next() time.Time {
	every := pollSteady
	if p.lastPoll.Before(p.busyUntil) {
		every = pollBusy
	}
	return p.lastPoll.Add(max(every, pollShare*p.took))
}
