package run

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// Defaults of options that a request leaves out.
const (
	defaultStall   = corral.Seconds(5 * time.Minute)
	defaultRuntime = corral.Seconds(time.Minute)
)

// A Prepared is a run that is checked and laid out on disk, but has no row yet. Its directory
// carries a marker until the run is started.
type Prepared struct {
	manager *Manager
	row     corral.Run
	layout  layout
}

// Prepare checks all that is asked for, then makes the run's directory: the one that the request names, which must be
// new or empty, or one in the manager's home. What is wrong with the request is an Invalid error, and nothing was made.
// The caller has found the cluster, and checked that paths are absolute and numbers in their ranges. It must end with
// Insert, committed, and Start, or with Discard.
func (m *Manager) Prepare(ctx context.Context, cluster corral.ClusterID, r api.NewRun) (*Prepared, error) {
	options, err := withDefaults(r.Options)
	if err != nil {
		return nil, err
	}
	r.Options = options
	p, links, err := checked(ctx, r)
	if err != nil {
		return nil, err
	}
	dir, err := m.home.choose(r.Dir, p.flow.Name)
	if err != nil {
		return nil, err
	}
	l := layout{dir}
	if err := m.layOut(ctx, l, r.Workflow, links); err != nil {
		m.home.release(dir)
		return nil, err
	}
	row := corral.Run{
		Cluster: cluster, Workflow: p.flow.Name, Dir: dir, Options: options, Labels: r.Labels,
		Tasks: newState(p).x.Counts(),
	}
	m.home.keep(dir, p)
	return &Prepared{manager: m, layout: l, row: row}, nil
}

// Check reports why Prepare would refuse a request, as far as that can be seen without making anything.
func (m *Manager) Check(ctx context.Context, r api.NewRun) error {
	var err error
	if r.Options, err = withDefaults(r.Options); err == nil {
		_, _, err = checked(ctx, r)
	}
	if err != nil || r.Dir == "" {
		return err
	}
	l := layout{filepath.Clean(r.Dir)}
	if l.unfinished() { // Prepare removes what is left there, or says whose it is
		return nil
	}
	return l.free()
}

// checked reads the workflow of a request, and finds its own inputs.
func checked(ctx context.Context, r api.NewRun) (*plan, []link, error) {
	p, err := newPlan(ctx, r.WorkflowName, r.Workflow, r.Options)
	if err != nil {
		return nil, nil, err
	}
	links, err := ownInputs(p.flow, r.SourceDir)
	return p, links, err
}

// layOut makes the run's directory. What an unfinished preparation left there goes first.
func (m *Manager) layOut(ctx context.Context, l layout, workflow []byte, links []link) error {
	if l.unfinished() {
		rows, err := m.rows(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(row corral.Run) bool { return row.Dir == l.dir }) {
			return corral.ErrorAt(corral.Conflict, "dir", "%s is that of another run", l.dir)
		}
		if err := l.remove(); err != nil {
			return err
		}
	}
	if filepath.Dir(l.dir) == m.home.dir {
		m.home.make()
	}
	return l.create(workflow, links)
}

// withDefaults fills in what is left out and refuses a clustering that does not exist.
func withDefaults(o corral.RunOptions) (corral.RunOptions, error) {
	o.Clustering = cmp.Or(o.Clustering, corral.NoClustering)
	o.Stall = cmp.Or(o.Stall, defaultStall)
	o.DefaultRuntime = cmp.Or(o.DefaultRuntime, defaultRuntime)
	if _, err := corral.ParseClustering(o.Clustering); err != nil {
		return o, corral.ErrorAt(corral.Invalid, "clustering", "%w", err)
	}
	return o, nil
}

// Cluster is the one that the run is prepared for.
func (p *Prepared) Cluster() corral.ClusterID { return p.row.Cluster }

// Insert makes the run known: its row is written in tx, with tx's actor as the owner.
func (p *Prepared) Insert(tx *store.Tx) (corral.Run, error) {
	row := p.row
	row.Owner = tx.Actor()
	return tx.CreateRun(row)
}

// Discard removes what Prepare made. It is for a run whose row was not committed.
func (p *Prepared) Discard() error {
	defer p.manager.home.release(p.layout.dir)
	return p.layout.remove()
}
