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

// A home is the parent of the directories of runs that name none, and knows which directories, there or
// elsewhere, are being prepared. A directory is reserved from choose until its run is started or given up, so
// that it is neither given to two runs nor taken for one that a corrald before has left. Its methods may be
// called from any goroutine.
type home struct {
	lg  *slog.Logger
	dir string // absolute

	mu        sync.Mutex       // guards preparing
	preparing map[string]*plan // :: directory of a run that is not started yet → its plan, once that is made
}

// choose returns the directory of a run and reserves it: no other preparation gets it before release. A name of its own
// has the workflow's name and the time, for people who look for it, and something random, because two runs may begin in
// one second.
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

// keep keeps the plan of a run that is prepared until it is started: to read a large workflow a second time would take
// as long as the first.
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

// started ends the reservation of the directory of a run that is known now, and removes its marker. It returns the plan
// that was kept, nil for none.
func (h *home) started(l layout) (*plan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.preparing[l.dir]
	delete(h.preparing, l.dir)
	return p, l.finish()
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

// make makes the parent. The directories in it have nothing to do with each other, and the file system should know
// (atomicfile.Scatter): what one run deletes must not slow down the next. If anything is wrong with the parent, making
// the run's directory says so.
func (h *home) make() {
	err := os.MkdirAll(h.dir, 0o700)
	if err == nil {
		err = atomicfile.Scatter(h.dir)
	}
	if err != nil {
		h.lg.Debug("run directories are not scattered", "dir", h.dir, "error", err)
	}
}

// removeOrphans removes directories that were laid out here for runs without a row: corrald died between the
// two. rows are all that there are, read after Manager.Run began.
func (h *home) removeOrphans(rows []corral.Run) {
	entries, err := os.ReadDir(h.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.lg.Warn("run directories are not readable", "dir", h.dir, "error", err)
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

// removeOrphan removes a directory that is marked as unfinished, unless it is just being prepared. The lock
// keeps its run from being started between the question and the answer.
func (h *home) removeOrphan(l layout) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, preparing := h.preparing[l.dir]; preparing || !l.unfinished() {
		return
	}
	if err := l.remove(); err != nil {
		h.lg.Warn("directory of a run that was never created stays", "dir", l.dir, "error", err)
		return
	}
	h.lg.Info("directory of a run that was never created is removed", "dir", l.dir)
}
