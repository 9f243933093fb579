package store

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A Whole opens transactions that see the rows of all owners. It is for corrald's loops, which have to find the
// objects to serve; for counting; and for deleting old data.
//
// A loop reads in a WholeTx which objects exist and then works on each in a transaction of its owner: through DB.Owner
// or, within the same snapshot of the database, through WholeTx.Owner. So a mistake in the work on one owner's object
// cannot affect another's.
type Whole struct{ db *DB }

// A WholeTx is a transaction that sees the rows of all owners. It has no method that finds an object by name, because
// names belong to owners, and none that changes an object. Each of its methods corresponds to the Tx method of the
// same name.
type WholeTx struct{ all *Tx }

// Whole returns a Whole, whose transactions see the rows of all owners: for recovery, metrics and retention.
func (d *DB) Whole() Whole { return Whole{d} }

// View reads like Owner.View.
func (o Whole) View(ctx context.Context, fn func(*WholeTx) error) error {
	return o.db.view(ctx, now(), func(w *work) error { return fn(w.whole()) })
}

// Write writes like Owner.Write. Objects that have an owner must be changed in the transaction that Owner returns.
func (o Whole) Write(ctx context.Context, actor string, fn func(*WholeTx) error) error {
	return o.db.write(ctx, now(), actor, func(w *work) error { return fn(w.whole()) })
}

func (w *work) whole() *WholeTx { return &WholeTx{&Tx{work: w, everyone: true}} }

// ReadWhole returns the value that fn reads in one view of the rows of all owners.
func ReadWhole[T any](ctx context.Context, db *DB, fn func(*WholeTx) (T, error)) (found T, err error) {
	err = db.Whole().View(ctx, func(tx *WholeTx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Owner returns the same transaction with an owner's view of the rows: it has the same snapshot, time and actor, and
// is committed together with the rest.
func (t *WholeTx) Owner(name string) *Tx { return t.all.work.as((*DB)(nil).Owner(name)) }

// Now is Tx.Now.
func (t *WholeTx) Now() time.Time { return t.all.now }

// The objects that corrald's loops serve, for all owners.

// SitesToServe is Tx.SitesToServe.
func (t *WholeTx) SitesToServe() ([]corral.Site, error) { return t.all.SitesToServe() }

// Scales is Tx.Scales.
func (t *WholeTx) Scales() ([]corral.Scale, error) { return t.all.Scales() }

// Provisioned is Tx.Provisioned.
func (t *WholeTx) Provisioned() ([]corral.Plan, error) { return t.all.Provisioned() }

// OpenEnsembles is Tx.OpenEnsembles.
func (t *WholeTx) OpenEnsembles() ([]record.Ensemble, error) { return t.all.OpenEnsembles() }

// Runs is Tx.Runs.
func (t *WholeTx) Runs(f RunFilter) ([]corral.Run, error) { return t.all.Runs(f) }

// Run is Tx.Run.
func (t *WholeTx) Run(id corral.RunID) (corral.Run, error) { return t.all.Run(id) }

// Clusters is Tx.Clusters.
func (t *WholeTx) Clusters(f Filter) ([]corral.Cluster, error) { return t.all.Clusters(f) }

// Cluster is Tx.Cluster.
func (t *WholeTx) Cluster(id corral.ClusterID) (corral.Cluster, error) { return t.all.Cluster(id) }

// Sites is Tx.Sites.
func (t *WholeTx) Sites(f Filter) ([]corral.Site, error) { return t.all.Sites(f) }

// Site is Tx.Site.
func (t *WholeTx) Site(id corral.SiteID) (corral.Site, error) { return t.all.Site(id) }

// Glideins is Tx.Glideins.
func (t *WholeTx) Glideins(f GlideinFilter) ([]corral.Glidein, error) { return t.all.Glideins(f) }

// Glidein is Tx.Glidein.
func (t *WholeTx) Glidein(id corral.GlideinID) (corral.Glidein, error) { return t.all.Glidein(id) }

// Job is Tx.Job.
func (t *WholeTx) Job(id corral.JobID) (corral.Job, error) { return t.all.Job(id) }

// JobTagged is Tx.JobTagged: a pilot presents its attempt's tag before its owner is known.
func (t *WholeTx) JobTagged(tag string) (corral.Job, error) { return t.all.JobTagged(tag) }

// EndingOwners is Tx.EndingOwners.
func (t *WholeTx) EndingOwners() ([]corral.Owner, error) { return t.all.EndingOwners() }

// Counting and deletion.

// Counts is Tx.Counts.
func (t *WholeTx) Counts(object string) ([]Count, error) { return t.all.Counts(object) }

// TasksEnded is Tx.TasksEnded.
func (t *WholeTx) TasksEnded() ([]TasksOver, error) { return t.all.TasksEnded() }

// OldestQueued is Tx.OldestQueued.
func (t *WholeTx) OldestQueued() (map[corral.SiteID]time.Time, error) { return t.all.OldestQueued() }

// Told is Tx.Told.
func (t *WholeTx) Told(site corral.SiteID) ([]corral.Job, error) { return t.all.Told(site) }

// HistorySpan is Tx.HistorySpan.
func (t *WholeTx) HistorySpan() (first, last int64, err error) { return t.all.HistorySpan() }

// HistoryAfter is Tx.HistoryAfter.
func (t *WholeTx) HistoryAfter(id int64, limit int) ([]corral.Entry, error) {
	return t.all.HistoryAfter(id, limit)
}

// History is Tx.History.
func (t *WholeTx) History(object string, id int64, page Page) ([]corral.Entry, error) {
	return t.all.History(object, id, page)
}

// ForgetHistory is Tx.ForgetHistory.
func (t *WholeTx) ForgetHistory(before time.Time, limit int) (more bool, err error) {
	return t.all.ForgetHistory(before, limit)
}
