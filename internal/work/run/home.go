package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A home is the parent of the directories of runs that do not name one, and knows which directories, there or
// elsewhere, are being prepared. A directory is reserved from choose until its run is started or given up, so that it
// is neither given to two runs nor mistaken for one left by an earlier corrald. Its methods may be called from any
// goroutine.
type home struct {
	lg  *slog.Logger
	dir string // absolute

	mu        sync.Mutex       // guards preparing
	preparing map[string]*plan // :: directory of a run that is not yet started → its plan, once made
}

// choose returns the directory of a run and reserves it: no other preparation gets it before release. The default name
// contains the workflow's name and the time, for users who search for it, and random characters, because two runs may
// begin in the same second.
func (h *home) choose(dir, workflow string) (string, error) {
	if dir == "" {
		at := time.Now().UTC().Format("20060102T150405")
		name := fmt.Sprintf("%s-%s-%s", fileName(workflow), at, strings.ToLower(rand.Text()[:6]))
		dir = filepath.Join(h.dir, name)
	}
	dir = filepath.Clean(dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, taken := h.preparing[dir]; taken {
		return "", corral.ErrorAt(corral.Conflict, "dir", "%s is being prepared for another run", dir)
	}
	h.preparing[dir] = nil
	return dir, nil
}

// keep keeps the plan of a prepared run until the run is started: reading a large workflow again would take as long as
// the first time.
func (h *home) keep(dir string, p *plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.preparing[dir] = p
}

// release ends the reservation of a directory.
func (h *home) release(dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.preparing, dir)
}

// started ends the reservation of the directory of a run whose row is stored, and removes its marker. It returns the
// plan that was kept, or nil.
func (h *home) started(l layout) (*plan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.preparing[l.dir]
	delete(h.preparing, l.dir)
	return p, l.finish()
}

// fileName derives a directory name from a workflow's name: at most 40 letters, digits and a few other characters.
func fileName(workflow string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, workflow)
	return strings.TrimLeft(name[:min(len(name), 40)], ".-")
}

// make creates the parent. The directories in it are unrelated, and the file system gets a hint about this
// (atomicfile.Scatter), so that deleting one run does not slow down the next. make ignores errors, because creating the
// run's directory reports them.
func (h *home) make() {
	err := os.MkdirAll(h.dir, 0o700)
	if err == nil {
		err = atomicfile.Scatter(h.dir)
	}
	if err != nil {
		h.lg.Debug("run directories are not scattered", "dir", h.dir, "error", err)
	}
}

// removeOrphans removes directories that were laid out here for runs without a row, because corrald died between the
// two steps. rows are all existing rows, read after Manager.Run began.
func (h *home) removeOrphans(rows []corral.Run) {
	entries, err := os.ReadDir(h.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.lg.Warn("reading the folder of run directories", "dir", h.dir, "error", err)
	}
	known := make(map[string]bool)
	for _, row := range rows {
		known[row.Dir] = true
	}
	for _, e := range entries {
		l := layout{filepath.Join(h.dir, e.Name())}
		if !known[l.dir] {
			h.removeOrphan(l)
		}
	}
}

// removeOrphan removes a directory that is marked as unfinished, unless it is being prepared. The lock prevents its run
// from being started between the check and the removal.
func (h *home) removeOrphan(l layout) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, preparing := h.preparing[l.dir]; preparing || !l.unfinished() {
		return
	}
	if err := l.remove(); err != nil {
		h.lg.Warn("removing the directory of a run that was never created", "dir", l.dir, "error", err)
		return
	}
	h.lg.Info("removed the directory of a run that was never created", "dir", l.dir)
}
