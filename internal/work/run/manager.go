package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// A Manager drives all runs of one corrald. Its methods may be called from any goroutine. Methods that take the id of a
// run look it up for the caller of their context; background work sets the caller to the owner for whom it works
// (access.For).
//
// Each run that is not over has a driver, a goroutine that ends when the run is over or corrald stops. A change from
// outside first moves the run's row and then notifies the driver; operations that need an inactive run, such as
// removing it, wait until its driver has ended.
type Manager struct {
	lg       *slog.Logger
	db       *store.DB
	clusters Clusters
	home     home
	indexes  indexes
	notes    notes

	changing sync.Mutex     // held while a run is changed from outside: cancelled, resumed, removed
	running  sync.WaitGroup // of drivers

	mu      sync.Mutex               // guards the fields below
	life    context.Context          // context of all drivers; nil before Run
	drivers map[corral.RunID]*driver // drivers that have not ended
	begun   chan struct{}            // closed once each run that was not over when Run began has a driver
}

// NewManager returns a manager that does not drive runs before Run. The caller owns db and clusters, which must outlive
// Run. dir, an absolute path, is the parent of the directories of runs that do not name one; it is created when needed.
func NewManager(lg *slog.Logger, db *store.DB, clusters Clusters, dir string) *Manager {
	return &Manager{
		lg: lg, db: db, clusters: clusters, drivers: make(map[corral.RunID]*driver), begun: make(chan struct{}),
		home: home{lg: lg, dir: dir, preparing: make(map[string]*plan)},
	}
}

// Run drives every run that is not over, and runs started later, until ctx ends; then it waits until all drivers have
// ended, and returns nil. Runs continue with the next Run. It fails only if the runs cannot be read. It must be called
// only once.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	m.life = ctx // first, so that Start starts all runs created from now on
	m.mu.Unlock()
	rows, err := m.rows(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	for _, row := range rows {
		if !row.State.Over() {
			m.start(row)
		}
	}
	close(m.begun)
	m.home.removeOrphans(rows)
	<-ctx.Done()
	m.running.Wait()
	return nil
}

// rows reads the runs of all owners, except DELETED ones, because owners share folders of this machine.
func (m *Manager) rows(ctx context.Context) ([]corral.Run, error) {
	return store.ReadWhole(ctx, m.db, func(tx *store.WholeTx) ([]corral.Run, error) {
		return tx.Runs(store.RunFilter{})
	})
}

// Start starts to drive a run whose row has been committed. Before Run, it does nothing, because Run will start the
// run.
func (m *Manager) Start(id corral.RunID) {
	m.mu.Lock()
	ctx := m.life
	m.mu.Unlock()
	if ctx == nil || ctx.Err() != nil {
		return
	}
	row, err := store.ReadWhole(ctx, m.db, func(tx *store.WholeTx) (corral.Run, error) { return tx.Run(id) })
	if err != nil {
		m.lg.Error("starting a run: it will start when corrald restarts", "run", id, "error", err)
		return
	}
	m.start(row)
}

// start starts the driver of a run unless it has one. The run's row is stored, so its directory is no longer being
// prepared.
func (m *Manager) start(row corral.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	prepared, err := m.home.started(layout{row.Dir})
	if err != nil {
		m.lg.Warn("removing the marker of a run's directory", "run", row.ID, "error", err)
	}
	if m.drivers[row.ID] != nil || row.State.Over() || m.life.Err() != nil {
		return
	}
	lg := m.lg.With("run", row.ID)
	d := &driver{
		lg: lg, clusters: m.clusters, prepared: prepared,
		progress: &progress{lg: lg, db: m.db.Owner(row.Owner), owner: row.Owner, row: row, notes: &m.notes},
		asks:     make(chan func(*driver)), cancel: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	m.drivers[row.ID] = d
	ctx := m.life
	m.running.Go(func() {
		d.drive(ctx)
		m.mu.Lock()
		delete(m.drivers, row.ID)
		m.mu.Unlock()
		m.notes.forget(row.ID)
		close(d.gone)
	})
}

// driverFor returns the driver of a run that the caller of ctx sees. It returns nil if the run does not have a driver
// or belongs to another owner: in the latter case, its row is not found either.
func driverFor(ctx context.Context, m *Manager, id corral.RunID) *driver {
	d := m.driver(id)
	if who, ok := access.From(ctx); d == nil || !ok || !who.Sees(d.progress.owner) {
		return nil
	}
	return d
}

// driver returns the driver of a run, or nil if it has none.
func (m *Manager) driver(id corral.RunID) *driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drivers[id]
}

// Cancel kills the running tasks of a run and ends the run as CANCELLED; it returns before that is done. A run that is
// over is a Conflict error. Cancel moves the row first, so that the cancellation survives a crash; the token only makes
// the driver act immediately.
func (m *Manager) Cancel(ctx context.Context, actor string, id corral.RunID) (row corral.Run, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	err = m.db.Request(ctx).Write(ctx, actor, func(tx *store.Tx) error {
		row, err = tx.MoveRun(id, corral.RunCancel, "cancelled by "+actor)
		return err
	})
	if d := m.driver(id); err == nil && d != nil {
		select {
		case d.cancel <- struct{}{}:
		default: // already notified
		}
	}
	return row, err
}

// Resume continues a run that is FAILED, STALLED or CANCELLED: finished tasks remain finished, and failed ones get all
// their retries again. The journal is written before the row is moved (renew).
func (m *Manager) Resume(ctx context.Context, actor string, id corral.RunID) (row corral.Run, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	row, err = m.still(ctx, id, corral.RunResume)
	if err != nil {
		return corral.Run{}, err
	}
	return goOn(ctx, m, actor, row, func(*state) (execution.Record, error) {
		return execution.Record{Resumed: true}, nil
	})
}

// goOn continues an inactive run after applying a record that gives it work. The function with makes the record from
// the run's state.
func goOn(ctx context.Context, m *Manager, actor string, row corral.Run, with order) (corral.Run, error) {
	db := m.db.Request(ctx)
	if err := db.View(ctx, func(tx *store.Tx) error { return admit.CheckResume(tx, row) }); err != nil {
		return corral.Run{}, err
	}
	tasks, err := renew(ctx, m.lg, row, with)
	if err != nil {
		return corral.Run{}, err
	}
	err = db.Write(ctx, actor, func(tx *store.Tx) error {
		if _, err := admit.Resume(tx, row); err != nil {
			return err
		}
		row, err = tx.SetRun(row.ID, tasks, nil)
		return err
	})
	if err == nil {
		m.Start(row.ID)
	}
	return row, err
}

// renew writes the record to the journal of a run that will continue. This precedes the move in the store: without the
// record the run would end again immediately, while the record alone has no effect.
func renew(ctx context.Context, lg *slog.Logger, row corral.Run, with order) (corral.RunTasks, error) {
	now := now()
	s, j, err := openState(ctx, lg, row, nil, now)
	if err != nil {
		return corral.RunTasks{}, err
	}
	rec, err := with(s)
	if err == nil {
		err = forgetIndex(layout{row.Dir})
	}
	if err != nil {
		return corral.RunTasks{}, errors.Join(err, j.close())
	}
	rec.At = execution.ToMsec(now)
	s.apply(rec)
	return s.x.Counts(), errors.Join(j.append(rec), j.close())
}

// Remove hides a run that is over. With purge, it first deletes the run's directory, including results; files that
// neither the run nor its tasks made remain.
func (m *Manager) Remove(ctx context.Context, actor string, id corral.RunID, purge bool) (row corral.Run, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	row, err = m.still(ctx, id, corral.RunRemove)
	if err != nil {
		return corral.Run{}, err
	}
	reason := "its directory stays: " + row.Dir
	if purge {
		if reason, err = (layout{row.Dir}).purge(); err != nil {
			return corral.Run{}, err
		}
	}
	err = m.db.Request(ctx).Write(ctx, actor, func(tx *store.Tx) error {
		row, err = tx.MoveRun(id, corral.RunRemove, reason)
		return err
	})
	return row, err
}

// still returns the row of a run for which move is legal, once its driver has ended: a driver that has just ended its
// run may still be closing the journal.
func (m *Manager) still(ctx context.Context, id corral.RunID, move corral.RunMove) (corral.Run, error) {
	row, err := readRow(ctx, m.db.Request(ctx), id)
	if err != nil {
		return corral.Run{}, err
	}
	if _, _, err := row.Apply(move, "", row.UpdatedAt); err != nil {
		return corral.Run{}, err
	}
	if d := m.driver(id); d != nil {
		select {
		case <-d.gone:
		case <-ctx.Done():
			return corral.Run{}, ctx.Err()
		}
	}
	return row, nil
}
