package condorpool

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// askTime is the maximum time for a pool's answer to a query.
const askTime = 10 * time.Second

// A watch maintains the pool of a READY cluster. It checks, in this order, whether the daemons are running, which
// attempts may receive jobs, and which workers exist. A pool that does not answer receives no updates until it has
// recovered; its workers remain listed for a while. The watch belongs to the keeper's goroutine.
//
// READY means that the pool was started, not that it is healthy: problems are shown in the row's reason and in the
// history. A cluster does not fail because a daemon died.
type watch struct {
	lg     *slog.Logger
	row    row
	dir    folder
	shared *shared

	health health
	view   view
	told   told
}

// forget resets the watch for a pool of unknown state.
func (w *watch) forget() { w.health, w.view, w.told = health{}, view{}, told{} }

// step performs the checks that are due and returns the time until the next call.
func (w *watch) step(ctx context.Context, c corral.Cluster, tools condor.Tools) (again time.Duration, err error) {
	if err := w.check(ctx, c, tools); err != nil {
		return 0, err
	}
	live, err := w.row.attempts(ctx, c)
	if err != nil {
		return 0, err
	}
	again = healthIdle
	if pool := w.shared.own(); pool != nil && !w.health.sick {
		if again, err = w.guard(ctx, pool, live); err != nil && ctx.Err() == nil {
			w.lg.Warn("updating the pool's live attempts failed", "error", err)
			w.health.sick = true // the health check is next; then the update is tried again
		}
	}
	// The time until the first event that is due, but never zero, because an error could otherwise make the keeper loop
	// without a pause.
	again = min(again, w.look(ctx, c, tools, live), w.untilCheck())
	return max(again, time.Millisecond), nil
}

// untilCheck returns the time until the next check of the daemons.
func (w *watch) untilCheck() time.Duration {
	return w.health.wait(time.Now(), w.shared.own() != nil, len(w.view.live) > 0)
}

// check checks the daemons if a check is due, restarts a pool whose master has died, and updates the reason in the
// cluster's row. A remote pool is only queried.
func (w *watch) check(ctx context.Context, c corral.Cluster, tools condor.Tools) error {
	if w.untilCheck() > 0 {
		return nil
	}
	var wrong string
	if pool := w.shared.own(); pool != nil {
		wrong = w.heal(ctx, pool)
	} else {
		asking, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		wrong = remote{c, tools, w.dir}.diagnose(asking)
	}
	if ctx.Err() != nil {
		return nil
	}
	w.health = health{checked: time.Now(), sick: wrong != ""}
	return w.note(ctx, wrong)
}

// heal checks a pool of ours and restarts it if its master has died. It returns a description of the problem, or "" if
// there is no problem.
func (w *watch) heal(ctx context.Context, pool *condor.Pool) (wrong string) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	wrong, dead := diagnose(pool.Health(asking))
	if !dead {
		return wrong
	}
	if err := w.note(ctx, wrong); err != nil {
		return sentence(err)
	}
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := pool.Start(starting); err != nil {
		return "the pool does not restart: " + sentence(err)
	}
	return ""
}

// note stores the pool's problem in the cluster's row.
func (w *watch) note(ctx context.Context, wrong string) error {
	news, err := w.row.health(ctx, wrong)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil && news != "":
		w.lg.Info("health of the pool", "is", news)
	}
	return err
}

// guard makes a pool of ours match only slots of live attempts and revoke the tokens of ended attempts. It returns the
// maximum time until the next update.
//
// Without these updates a worker whose attempt has ended could continue to accept jobs, and a token that was stolen
// from a site could be used until it expires. Only the negotiator rereads the file of live attempts; to revoke tokens,
// all daemons reread their configuration.
func (w *watch) guard(ctx context.Context, pool *condor.Pool, live []attempt) (again time.Duration, err error) {
	if wait := w.told.wait(time.Now()); wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if text := liveText(live); text != w.told.text {
		w.told.at = time.Now()
		if err := w.dir.write(liveFile, text); err != nil {
			return guardEvery, err
		}
		if _, err := pool.Tools().Run(ctx, nil, "condor_reconfig", "-daemon", "negotiator"); err != nil {
			return guardEvery, err
		}
		w.told.text = text
	}
	return healthIdle, w.revoke(ctx, pool)
}

// revoke makes the pool revoke the tokens of ended attempts, and records the revocation. If corrald ends between the
// two steps, the tokens are revoked once more, which has no effect.
func (w *watch) revoke(ctx context.Context, pool *condor.Pool) error {
	over, now, err := w.row.tokensOver(ctx)
	if err != nil || len(over) == 0 {
		return err
	}
	tokens := make([]condor.Token, len(over))
	for i, t := range over {
		tokens[i] = condor.Token{ID: t.ID, Expires: t.EndsAt}
	}
	w.told.at = time.Now()
	if err := pool.Revoke(ctx, now, tokens...); err != nil {
		return err
	}
	w.lg.Info("tokens revoked", "count", len(over))
	return w.row.revoked(ctx, over)
}

// look queries the collector for workers if a query is due, and returns the time until the next query. Workers of an
// ended attempt are removed at once, even if their slots still report them.
func (w *watch) look(ctx context.Context, c corral.Cluster, tools condor.Tools, live []attempt) time.Duration {
	if w.view.attempts(live, time.Now()) {
		w.shared.show(ofAttempts(w.shared.known(), live)) // even if the collector is no longer queried
	}
	if wait := w.view.wait(time.Now(), live, w.shared.known()); wait > 0 {
		return wait
	}
	w.ask(ctx, c, tools, live)
	return w.view.wait(time.Now(), live, w.shared.known())
}

// ask queries the collector for the cluster's slots.
func (w *watch) ask(ctx context.Context, c corral.Cluster, tools condor.Tools, live []attempt) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	from := time.Now()
	which := []string{"-constraint", slotsOf(c.Name, heardWithin)}
	ads, err := tools.Query(asking, "condor_status", which, slotAttributes)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if !w.view.silent {
			w.lg.Warn("the collector does not answer", "error", err)
		}
		w.health.sick = true // so that the pool's health is checked soon
	}
	now := time.Now()
	watched := w.view.answered(err == nil, now, now.Sub(from))
	if w.shared.show(merge(w.shared.known(), workersOf(ads, live), now, watched)) {
		w.view.changed = now
	}
}

// heardWithin is the maximum age of a slot's last update. A worker sends an update at least every 14 s
// (internal/node/pilot). A killed worker cannot withdraw its ad, and a remote collector would keep the ad for 15
// minutes.
const heardWithin = 2 * time.Minute

// slotsOf returns a constraint for a cluster's slots. The collector evaluates the age of their updates, because the
// updates are dated by its clock.
func slotsOf(cluster string, within time.Duration) string {
	return fmt.Sprintf("CorralCluster == %s && CorralAttempt isnt undefined && LastHeardFrom >= time() - %d",
		classad.FormatNew(cluster), int64(within/time.Second))
}
