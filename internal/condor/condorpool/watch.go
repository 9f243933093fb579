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

// askTime is how long a pool may take to answer a question.
const askTime = 10 * time.Second

// A watch looks after the pool of a READY cluster, in this order: whether its daemons run, which attempts may have
// jobs, and which workers are there. A pool that does not answer is not told anything until it is well again; the
// workers that were there stay listed for a while. The watch belongs to the keeper's goroutine.
//
// READY says that the pool was started, not that it is well: what is wrong stands in the row's reason, and in the
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

// forget begins again with a pool of which nothing is known.
func (w *watch) forget() { w.health, w.view, w.told = health{}, view{}, told{} }

// step does what is due, and returns when it is to be called again.
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
			w.lg.Warn("telling the pool which attempts are alive failed", "error", err)
			w.health.sick = true // it is asked how it is next; then this is tried again
		}
	}
	// Whatever is due first, but never at once: an error could otherwise have the keeper turn without a pause.
	again = min(again, w.look(ctx, c, tools, live), w.untilCheck())
	return max(again, time.Millisecond), nil
}

// untilCheck returns how long it is until the daemons are asked for.
func (w *watch) untilCheck() time.Duration {
	return w.health.wait(time.Now(), w.shared.own() != nil, len(w.view.live) > 0)
}

// check asks for the daemons if it is time to, starts a pool again whose master has died, and keeps the reason of the
// cluster's row. A pool that somebody else runs is only asked.
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

// heal asks a pool of ours how it is and starts it again if its master has died. It returns what is wrong, "" if
// nothing is.
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
		return "the pool does not start again: " + sentence(err)
	}
	return ""
}

// note keeps what is wrong with the pool in the cluster's row.
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

// guard has a pool of ours match slots of live attempts only, and refuse the tokens of those that are over. It
// returns when it has more to tell the pool, at the latest.
//
// A worker whose attempt has ended could otherwise go on taking jobs, and a token that was stolen from a site could be
// used as long as it says. Only the negotiator reads the file of live attempts again; to revoke tokens, all daemons
// read their configuration.
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

// revoke has the pool refuse the tokens of attempts that are over, and records that it does. If corrald ends between
// the two, they are revoked once more, which changes nothing.
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

// look asks the collector for workers if it is time to, and returns when that will be next. Workers of an attempt that
// is over are dropped at once, whatever their slots still say.
func (w *watch) look(ctx context.Context, c corral.Cluster, tools condor.Tools, live []attempt) time.Duration {
	if w.view.attempts(live, time.Now()) {
		w.shared.show(ofAttempts(w.shared.known(), live)) // also when the collector is not asked any longer
	}
	if wait := w.view.wait(time.Now(), live, w.shared.known()); wait > 0 {
		return wait
	}
	w.ask(ctx, c, tools, live)
	return w.view.wait(time.Now(), live, w.shared.known())
}

// ask asks the collector for the cluster's slots.
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
		w.health.sick = true // so that it is asked soon how the pool is
	}
	now := time.Now()
	watched := w.view.answered(err == nil, now, now.Sub(from))
	if w.shared.show(merge(w.shared.known(), workersOf(ads, live), now, watched)) {
		w.view.changed = now
	}
}

// heardWithin is how old a slot's last word may be. A worker speaks at least every 14 s (internal/node/pilot); one that
// was killed cannot take back what it said, and a collector that is not ours would believe it for 15 minutes.
const heardWithin = 2 * time.Minute

// slotsOf is true of the slots of a cluster. Their age is for the collector to judge, whose clock dates their words.
func slotsOf(cluster string, within time.Duration) string {
	return fmt.Sprintf("CorralCluster == %s && CorralAttempt isnt undefined && LastHeardFrom >= time() - %d",
		classad.FormatNew(cluster), int64(within/time.Second))
}
