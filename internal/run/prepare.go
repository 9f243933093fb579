package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/internal/store"
)

// Defaults of options that a request leaves out.
const (
	DefaultStall   = 5 * time.Minute
	DefaultRuntime = time.Minute
)

// NewRun asks for a run. Who asks has checked that paths are absolute and numbers in their ranges, as internal/server does.
type NewRun struct {
	Cluster      corral.ClusterID
	Workflow     []byte // a WfFormat document
	WorkflowName string // the file it came from, for messages
	SourceDir    string // absolute: the workflow's own inputs are resolved here
	Dir          string // absolute: the run's directory, new or empty; empty: one is chosen below Config.Dir
	Options      corral.RunOptions
	Labels       map[string]string
}

// A Prepared is a run that is checked and laid out on disk, but that nobody knows of yet. Its directory
// carries a marker until the run is started.
type Prepared struct {
	manager *Manager
	row     corral.Run
	layout  layout
}

// Prepare checks all that is asked for, then makes the run's directory. What is wrong with the request
// is an Invalid error, and nothing was made. The caller must end with Insert, committed, and Start, or
// with Discard.
func (m *Manager) Prepare(ctx context.Context, r NewRun) (*Prepared, error) {
	options, err := withDefaults(r.Options)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(ctx, r.WorkflowName, r.Workflow, options)
	if err != nil {
		return nil, err
	}
	links, err := ownInputs(p.flow, r.SourceDir)
	if err != nil {
		return nil, err
	}
	dir, err := m.chooseDir(r.Dir, p.flow.Name)
	if err != nil {
		return nil, err
	}
	l := layout{dir}
	if err := m.layOut(ctx, l, r.Workflow, links); err != nil {
		m.release(dir)
		return nil, err
	}
	return &Prepared{manager: m, layout: l, row: corral.Run{
		Cluster: r.Cluster, Workflow: p.flow.Name, Dir: dir, Options: options, Labels: r.Labels,
		Tasks: newState(p).counts(),
	}}, nil
}

// layOut makes the run's directory. What a preparation left there that came to nothing goes first.
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
	if filepath.Dir(l.dir) == m.config.Dir {
		m.makeHome()
	}
	return l.create(workflow, links)
}

// makeHome makes the parent of the directories that runs get by default. They have nothing to do with
// each other, and the file system should know: what one run deletes must not slow down the next. If
// anything is wrong with the parent, making the run's directory says so.
func (m *Manager) makeHome() {
	err := os.MkdirAll(m.config.Dir, 0o700)
	if err == nil {
		err = disk.Scatter(m.config.Dir)
	}
	if err != nil {
		m.lg.Debug("run directories are not scattered", "dir", m.config.Dir, "error", err)
	}
}

// withDefaults fills in what is left out and refuses a clustering that there is not.
func withDefaults(o corral.RunOptions) (corral.RunOptions, error) {
	if o.Clustering == "" {
		o.Clustering = clusteringNone
	}
	if o.Stall == 0 {
		o.Stall = corral.Seconds(DefaultStall)
	}
	if o.DefaultRuntime == 0 {
		o.DefaultRuntime = corral.Seconds(DefaultRuntime)
	}
	if _, err := parseClustering(o.Clustering); err != nil {
		return o, corral.ErrorAt(corral.Invalid, "clustering", "%w", err)
	}
	return o, nil
}

// chooseDir returns the run's directory and reserves it: no other preparation gets it before release.
func (m *Manager) chooseDir(dir, workflow string) (string, error) {
	if dir == "" {
		name := fmt.Sprintf("%s-%s-%s", fileName(workflow), time.Now().UTC().Format("20060102T150405"), strings.ToLower(rand.Text()[:6]))
		dir = filepath.Join(m.config.Dir, name)
	}
	dir = filepath.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.preparing[dir] {
		return "", corral.ErrorAt(corral.Conflict, "dir", "%s is being prepared for another run", dir)
	}
	m.preparing[dir] = true
	return dir, nil
}

// release ends the reservation of a directory.
func (m *Manager) release(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.preparing, dir)
}

// fileName makes a directory's name of a workflow's: letters, digits and a few signs, at most 40.
func fileName(workflow string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, workflow)
	return strings.TrimLeft(name[:min(len(name), 40)], ".-")
}

// Insert makes the run known: its row is written in tx, with tx's actor as the owner.
func (p *Prepared) Insert(tx *store.Tx) (corral.Run, error) {
	row := p.row
	row.Owner = tx.Actor()
	return tx.CreateRun(row)
}

// Discard removes what Prepare made. It is for a run whose row was not committed.
func (p *Prepared) Discard() error {
	defer p.manager.release(p.layout.dir)
	return p.layout.remove()
}

// removeOrphans removes directories that were laid out below the default directory for runs that no
// row knows: corrald died between the two. rows are read after Run began.
func (m *Manager) removeOrphans(rows []corral.Run) {
	entries, err := os.ReadDir(m.config.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.lg.Warn("run directories are not readable", "dir", m.config.Dir, "error", err)
	}
	known := make(map[string]bool)
	for _, row := range rows {
		known[row.Dir] = true
	}
	for _, e := range entries {
		l := layout{filepath.Join(m.config.Dir, e.Name())}
		if !known[l.dir] {
			m.removeOrphan(l)
		}
	}
}

// removeOrphan removes a directory that is marked as unfinished, unless it is just being prepared. The
// lock keeps its run from being started between the question and the answer.
func (m *Manager) removeOrphan(l layout) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.preparing[l.dir] || !l.unfinished() {
		return
	}
	if err := l.remove(); err != nil {
		m.lg.Warn("directory of a run that was never created stays", "dir", l.dir, "error", err)
		return
	}
	m.lg.Info("directory of a run that was never created is removed", "dir", l.dir)
}
