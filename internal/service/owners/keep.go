package owners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/scaling"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

const (
	again      = time.Minute            // interval of checks without a change
	afterError = 5 * time.Second        // interval after an error
	pace       = 100 * time.Millisecond // minimum interval of checks, even if much changes
)

// Runs cancels runs; it is implemented by run.Manager.
type Runs interface {
	Cancel(ctx context.Context, actor string, id corral.RunID) (corral.Run, error)
}

// Keys manages the owners' ssh keys.
type Keys interface {
	// Forget deletes an owner's key. A missing key is not an error.
	Forget(owner string) error
}

// A Keeper removes the objects of owners whose accounts are being ended.
type Keeper struct {
	Log  *slog.Logger
	DB   *store.DB
	Runs Runs
	Keys Keys
}

// Run ends owners until ctx ends. It checks after each change, and first at its start, so that work interrupted by a
// crash continues.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		// While an owner is ENDING, any change wakes the loop; otherwise only a change of an owner does.
		anything, asked := k.DB.Changed(store.Subject{}), k.DB.Changed(store.Subject{Object: corral.ObjectOwner})
		rest := again
		ending, err := store.ReadWhole(ctx, k.DB, (*store.WholeTx).EndingOwners)
		for _, o := range ending {
			err = errors.Join(err, k.end(ctx, o))
		}
		if err != nil && ctx.Err() == nil {
			k.Log.Error("ending an owner failed; trying again", "error", err)
			rest = afterError
		}
		if len(ending) == 0 || err != nil {
			anything = nil
		}
		if !retry.For(ctx, pace) {
			return nil
		}
		select {
		case <-asked:
		case <-anything:
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
	}
}

// end performs the actions that are possible for an owner now. Steps are independent, so a failing one, such as a run
// that cannot be cancelled, does not prevent the others.
func (k *Keeper) end(ctx context.Context, o corral.Owner) error {
	b, err := store.Read(ctx, k.DB.Owner(o.Name), func(tx *store.Tx) (store.Belongings, error) {
		return tx.Belongings(o.Name)
	})
	if err != nil {
		return err
	}
	s := Next(time.Now(), b)
	err = errors.Join(k.stop(ctx, o, s), k.cancel(ctx, o, s), k.remove(ctx, o, s))
	if err != nil || !s.Done {
		return k.named(o, err)
	}
	if err := k.Keys.Forget(o.Name); err != nil {
		return k.named(o, err)
	}
	return k.named(o, k.DB.Owner(o.Name).Write(ctx, store.Actor, func(tx *store.Tx) error {
		if b, err := tx.Belongings(o.Name); err != nil || !b.Nothing() {
			return err
		}
		if err := tx.Log(corral.ObjectOwner, int64(o.ID), "key", "its ssh key is deleted"); err != nil {
			return err
		}
		_, err := tx.MoveOwner(o.Name, corral.OwnerEndDone, "nothing is left but records")
		return err
	}))
}

func (k *Keeper) named(o corral.Owner, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", o.Name, err)
	}
	return err
}

// reason returns the reason for ending an owner's objects.
func reason(o corral.Owner) string { return "the account " + o.Name + " is being ended" }

// write writes a part of a step with an entry in the owner's history, unless the part is empty.
func (k *Keeper) write(ctx context.Context, o corral.Owner, event string, n int, fn func(*store.Tx) error) error {
	if n == 0 {
		return nil
	}
	return k.DB.Owner(o.Name).Write(ctx, store.Actor, func(tx *store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Log(corral.ObjectOwner, int64(o.ID), event, fmt.Sprintf("%d", n))
	})
}

// each calls do for each of some objects.
func each[ID any](ids []ID, do func(*store.Tx, ID) error) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, id := range ids {
			if err := do(tx, id); err != nil {
				return err
			}
		}
		return nil
	}
}

// stop ends the objects that request others: tokens that a backup has restored, scales, ensembles, plans. It uses the
// same functions as the corresponding verbs, so the result is the same: pilots of a scale or a plan are asked to
// drain here, and are cancelled with all others a moment later.
func (k *Keeper) stop(ctx context.Context, o corral.Owner, s Step) error {
	tokens, err := store.Read(ctx, k.DB.Owner(o.Name), func(tx *store.Tx) (int, error) {
		with, err := tx.Owner(o.Name)
		return with.Has.Tokens, err
	})
	if err != nil {
		return err
	}
	return errors.Join(
		k.write(ctx, o, "revoke tokens", tokens, func(tx *store.Tx) error {
			_, err := tx.RevokeTokens(o.Name, reason(o))
			return err
		}),
		k.write(ctx, o, "end scales", len(s.Scales), each(s.Scales, func(tx *store.Tx, id corral.ClusterID) error {
			row, err := tx.Scale(id)
			if err == nil {
				err = scaling.Release(tx, row, reason(o))
			}
			if corral.KindOf(err) == corral.NotFound {
				return nil
			}
			return err
		})),
		k.write(ctx, o, "end ensembles", len(s.Ensembles), each(s.Ensembles, func(tx *store.Tx, id record.ID) error {
			return store.Done(tx.MoveEnsemble(id, record.Stop, reason(o)))
		})),
		k.write(ctx, o, "release plans", len(s.Plans), each(s.Plans, func(tx *store.Tx, id corral.PlanID) error {
			p, err := tx.PlanRow(id)
			if err == nil {
				_, err = provision.Release(tx, p, reason(o))
			}
			return err
		})))
}

// cancel ends runs and pilots. A run that ended meanwhile is not an error. The history entry follows the runs,
// because each run is cancelled in its own transaction; after a crash between the two the entry is missing, but the
// runs' own histories show what happened.
func (k *Keeper) cancel(ctx context.Context, o corral.Owner, s Step) error {
	var errs []error
	cancelled := 0
	for _, id := range s.Runs {
		switch _, err := k.Runs.Cancel(access.With(ctx, access.For(o.Name)), store.Actor, id); {
		case err == nil:
			cancelled++
		case corral.KindOf(err) != corral.Conflict:
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs,
		k.write(ctx, o, "cancel runs", cancelled, func(*store.Tx) error { return nil }),
		k.write(ctx, o, "remove glideins", len(s.Glideins),
			each(s.Glideins, func(tx *store.Tx, id corral.GlideinID) error {
				return store.Done(tx.AskGlidein(id, corral.AskCancel, reason(o)))
			})))...)
}

// remove requests the removal of sites and clusters that are no longer needed. A site is removed by its cleanup job,
// an embedded cluster is deleted at once, and an HTCondor pool is stopped by its keeper.
func (k *Keeper) remove(ctx context.Context, o corral.Owner, s Step) error {
	return errors.Join(
		k.write(ctx, o, "remove sites", len(s.Sites), each(s.Sites, func(tx *store.Tx, id corral.SiteID) error {
			return store.Done(tx.MoveSite(id, corral.SiteRemove, reason(o)))
		})),
		k.write(ctx, o, "remove clusters", len(s.Clusters),
			each(s.Clusters, func(tx *store.Tx, id corral.ClusterID) error {
				return store.Done(tx.RemoveCluster(id, reason(o)))
			})))
}
