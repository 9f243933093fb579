package engine

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// errNothingLeft ends the loop of a deleted site without jobs.
var errNothingLeft = errors.New("nothing left to do")

// A siteLoop serves one site. All of it belongs to the goroutine of run. It connects the parts: it determines their
// order and writes the records; each part has its own memory.
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
	creds   *credentials
	relay   *siteaccess.Relay
	told    map[corral.JobID]bool // attempts whose dispatcher was asked to drain them
}

func newSiteLoop(e *Engine, site corral.Site) *siteLoop {
	way := &line{lg: e.lg, db: e.db.Owner(site.Owner), reach: e.cfg.Reach, id: site.ID, pace: pace{steady: e.cfg.Poll}}
	l := &siteLoop{
		e:       e,
		line:    way,
		watch:   newWatch(way, e.clusters),
		stager:  newStager(way, e.cfg),
		tokens:  newTokens(way, e.clusters, e.cfg.Tokens),
		ends:    &ends{line: way, stuck: map[string]retry{}},
		remains: &remains{line: way, prober: e.cfg.Prober, ended: true},
		trouble: &trouble{line: way},
		creds:   &credentials{line: way},
		relay: siteaccess.NewRelay(siteaccess.RelayConfig{
			Log: e.lg, Reach: e.cfg.Reach, Clusters: e.clusters, Address: e.cfg.Address,
		}),
		told: map[corral.JobID]bool{},
	}
	l.sender = &sender{
		line: way, cfg: e.cfg, watch: l.watch, stager: l.stager, tokens: l.tokens, relay: l.relay,
	}
	return l
}

// alarms holds the channels that end a loop's rest; they are obtained before the step, so that no signal is missed.
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

// run performs steps until ctx ends or the site no longer needs anything. After a failed step the site is left alone
// for a while, because an error means that the site was not reached or did not answer. A Conflict, however, means that
// a person or a pilot made a change first, and the next step follows at once.
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
		case corral.KindOf(err) == corral.Conflict: // the state changed during the decision
			l.e.lg.Info("deciding again", "site", l.line.id, "err", err)
			next = pollBusy
		case err != nil:
			next = l.trouble.enter(ctx, time.Now(), err)
			wake = alarms{loggedIn: wake.loggedIn} // only time or a person can help now
		case wake.lost == nil: // the step may have opened a connection
			wake.lost = l.e.cfg.Reach.Lost(l.line.id)
		}
		l.rest(ctx, next, wake)
	}
}

// rest waits for the given time or until something is recorded, but in the latter case at least as long as loadShare
// requires. Workers that register or leave are noticed at the next poll, which is then due sooner: if hundreds of
// workers do so, separate polls would be too expensive.
func (l *siteLoop) rest(ctx context.Context, most time.Duration, wake alarms) {
	begin := time.Now()
	end, timer := begin.Add(most), time.NewTimer(most)
	sooner := func(at time.Time) {
		if at.Before(end) {
			end = at
			timer.Reset(time.Until(end))
		}
	}
	for {
		select {
		case <-wake.registered:
			now := time.Now()
			l.line.pace.busy(now)
			sooner(now.Add(max(l.line.pace.next().Sub(now), pollSoon)))
			wake.registered = nil
			continue
		case <-wake.recorded:
			sooner(begin.Add((loadShare - 1) * l.line.pace.load))
			wake.recorded = nil
			continue
		case <-ctx.Done():
		case <-wake.moved:
		case <-wake.loggedIn:
		case <-wake.lost:
		case <-timer.C:
		}
		return
	}
}
