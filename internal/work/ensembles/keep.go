package ensembles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// The intervals at which the keeper checks an ensemble: a shorter one applies while a workflow waits for a free pilot.
const (
	lookEvery = 500 * time.Millisecond
	waitEvery = 200 * time.Millisecond
	retry     = 5 * time.Second // after an error
)

// Workers returns the workers of a cluster; admission.Clusters implements it.
type Workers interface {
	Workers(corral.ClusterID) []corral.Worker
}

// A Keeper carries out ensembles. All data on which its decisions depend is in the store and in the ensembles' files:
// the keeper itself remembers only when the next decision about pilots is due, and after a restart of corrald it
// decides at once.
type Keeper struct {
	Log     *slog.Logger
	DB      *store.DB
	Runs    *run.Manager
	Workers Workers
	Machine corral.SiteQueue // describes this machine as the queue of the local fork batch system
	Shelf   Shelf
}

// Run carries out all ensembles until ctx ends. Each ensemble has its own goroutine, so that an ensemble whose cluster
// does not respond does not delay the others.
func (k *Keeper) Run(ctx context.Context) error {
	k.sweep(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	ended := map[record.ID]chan struct{}{} // :: ensemble → closed when its goroutine ends
	for {
		changed := k.DB.Changed(store.Subject{Object: corral.ObjectEnsemble})
		open, err := store.ReadWhole(ctx, k.DB, (*store.WholeTx).OpenEnsembles)
		if err != nil && ctx.Err() == nil {
			k.Log.Error("looking for ensembles failed; retrying", "error", err)
		}
		maps.DeleteFunc(ended, func(_ record.ID, done chan struct{}) bool { return closed(done) })
		for _, row := range open {
			if ended[row.ID] != nil {
				continue
			}
			done := make(chan struct{})
			ended[row.ID] = done
			all.Go(func() {
				defer close(done)
				k.keep(ctx, row)
			})
		}
		var tick <-chan time.Time
		if err != nil {
			tick = time.After(retry)
		}
		select {
		case <-changed:
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// keep carries out one ensemble until it has ended.
func (k *Keeper) keep(ctx context.Context, row record.Ensemble) {
	ctx = access.With(ctx, access.For(row.Owner))
	c := carrier{Keeper: k, db: k.DB.Owner(row.Owner), id: row.ID}
	for {
		pause, err := c.look(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errEnded):
			return
		case err != nil:
			k.Log.Error("carrying out an ensemble failed; retrying", "ensemble", row.ID, "error", err)
			pause = retry
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// errEnded means that no further action is needed for an ensemble.
var errEnded = errors.New("the ensemble has ended")

// A carrier carries out one ensemble.
type carrier struct {
	*Keeper
	db        store.Owner // the ensemble's
	id        record.ID
	direction *Direction // nil if it has not been read yet
	due       time.Duration
	limit     string // why no pilot was requested, as recorded in the history
}

// look checks the ensemble once, and carries out the resulting decision. It returns the pause before the next check.
func (c *carrier) look(ctx context.Context) (pause time.Duration, err error) {
	s, err := c.sight(ctx)
	if err != nil {
		return 0, err
	}
	if s.Row.State != record.Running && s.Row.State != record.Ending {
		return 0, errors.Join(errEnded, c.Shelf.Remove(s.Row.Files))
	}
	if c.direction == nil {
		d, err := c.Shelf.direction(ctx, s.Row)
		if errors.Is(err, fs.ErrNotExist) { // the file will not reappear
			return waitEvery, c.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
				_, err = tx.MoveEnsemble(c.id, record.Stop, "its workflows are gone: "+err.Error())
				return err
			})
		}
		if err != nil {
			return 0, err
		}
		c.direction = &d
	}
	waits := false
	for _, m := range s.Row.Members {
		waits = waits || s.Row.State == record.Running && m.Standing == record.Waiting
	}
	if waits {
		if s.Begun, err = c.begun(ctx, s); err != nil {
			return 0, err
		}
	}
	x := c.direction.Decide(s)
	if err := c.carryOut(ctx, s, x); err != nil {
		return 0, err
	}
	c.due = x.Next
	pause = lookEvery
	if waits {
		pause = waitEvery
	}
	if left := x.Next - s.since(s.Now); left > 0 {
		pause = min(pause, left)
	}
	return pause, nil
}

// sight reads the known state of the ensemble.
func (c *carrier) sight(ctx context.Context) (s Sight, err error) {
	s = Sight{Due: c.due, Runs: map[corral.RunID]corral.Run{}}
	err = c.db.View(ctx, func(tx *store.Tx) error {
		if s.Row, err = tx.Ensemble(c.id); err != nil {
			return err
		}
		switch site, err := tx.Site(s.Row.Pilots.SiteID); {
		case corral.KindOf(err) == corral.NotFound, err == nil && site.State == corral.SiteDeleted:
			s.Closed = fmt.Sprintf("its site %s is gone", s.Row.Pilots.Site)
		case err != nil:
			return err
		case site.State.Closed():
			s.Closed = fmt.Sprintf("its site %s is %s", site.Name, site.State)
		}
		if s.Refusal, err = tx.Refusal(s.Row.Owner); err != nil {
			return err
		}
		labels := map[string]string{record.Label: strconv.FormatInt(int64(c.id), 10)}
		s.Glideins, err = tx.Glideins(store.GlideinFilter{Filter: store.Filter{All: true}, Labels: labels})
		if err != nil {
			return err
		}
		runs, err := tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Labels: labels})
		for _, r := range runs {
			s.Runs[r.ID] = r
		}
		return err
	})
	s.Now = time.Now()
	s.Workers = c.Workers.Workers(s.Row.Cluster)
	return s, err
}

// begun returns the total estimated time of the unfinished tasks of begun workflows.
func (c *carrier) begun(ctx context.Context, s Sight) (sum time.Duration, err error) {
	for k, m := range s.Row.Members {
		if m.Standing != record.Begun || s.Runs[m.Run].State.Over() {
			continue
		}
		_, progress, err := c.Runs.Left(ctx, m.Run)
		if err != nil {
			return 0, err
		}
		tasks := c.direction.Problem.Ensemble[k].Tasks
		for i, p := range progress {
			if p.State != corral.TaskDone {
				sum += tasks[i].Runtime
			}
		}
	}
	return sum, nil
}
