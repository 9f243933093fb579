package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/work/reuse"
)

// A layout is a run's directory D. Its files belong to corrald or to the run's tasks; other files in D are never
// touched. D contains a marker from before its first file until the run is started. It shows a restarted corrald which
// directories an earlier one left unfinished.
type layout struct{ dir string }

const (
	workflowFile = "workflow.json"
	executedFile = "workflow-executed.json"
	reportFile   = "report.json"
	profileFile  = "profile.json"
	journalFile  = "journal"
	indexFile    = "tasks.index" // written at the end of the run
	markerFile   = ".unfinished" // from before the first file until the run is started
)

func (l layout) path(name string) string { return filepath.Join(l.dir, name) }

// attempt returns the directory of an attempt at a task.
func (l layout) attempt(task string, number int) string {
	return filepath.Join(l.dir, executor.TasksDir, fmt.Sprintf("%s.%d", task, number))
}

// script returns the file with the output of the last try of a unit's script.
func (l layout) script(unit string, post bool) string {
	kind := ".pre"
	if post {
		kind = ".post"
	}
	return filepath.Join(l.dir, scriptDir, unit+kind)
}

// create creates the directory with the workflow, which the function write writes, and with links to its own inputs. D
// must be new or empty. If create fails, it removes its files.
func (l layout) create(write func(io.Writer) error, links []link) error {
	if err := l.claim(); err != nil {
		return err
	}
	if err := l.fill(write, links); err != nil {
		return errors.Join(corral.ErrorAt(corral.Failed, "dir", "making the run's directory: %w", err), l.remove())
	}
	return nil
}

// claim creates D, or checks that it is empty, and marks it.
func (l layout) claim() error {
	err := os.MkdirAll(l.dir, 0o700)
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "dir", "making the run's directory: %w", err)
	}
	if err := l.free(); err != nil {
		return err
	}
	if err := os.WriteFile(l.path(markerFile), nil, 0o600); err != nil {
		return corral.ErrorAt(corral.Invalid, "dir", "%w", err)
	}
	return nil
}

// free returns the reason why D cannot be used for a run: it is not empty, or cannot be created or written to. It
// creates nothing.
func (l layout) free() error {
	at := l.dir
	entries, err := os.ReadDir(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) { // find the nearest existing parent
		at = filepath.Dir(at)
		_, err = os.Stat(at)
	}
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "dir", "%w", err)
	}
	if len(entries) > 0 {
		const why = "%s is not empty: it has %s; a run needs its own directory"
		return corral.ErrorAt(corral.Invalid, "dir", why, l.dir, entries[0].Name())
	}
	const writeAndSearch = 0o3 // W_OK and X_OK of access(2)
	if err := syscall.Access(at, writeAndSearch); err != nil {
		return corral.ErrorAt(corral.Invalid, "dir", "%s: files cannot be created in it: %w", at, err)
	}
	return nil
}

// fill creates the files of a run's directory. The workflow comes last: a directory without it is not recognized as a
// run's.
func (l layout) fill(write func(io.Writer) error, links []link) error {
	for _, dir := range []string{executor.DataDir, executor.TasksDir} {
		if err := os.Mkdir(l.path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, k := range links {
		name := filepath.Join(l.dir, executor.DataDir, k.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(k.source, name); err != nil {
			return err
		}
	}
	return writeFile(l.path(workflowFile), write)
}

// writeFile replaces the content of a file by the output of write.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// unfinished reports whether D contains the marker.
func (l layout) unfinished() bool {
	_, err := os.Lstat(l.path(markerFile))
	return err == nil
}

// finish removes the marker, because the run is known.
func (l layout) finish() error {
	if err := os.Remove(l.path(markerFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the marker of an unfinished run directory: %w", err)
	}
	return nil
}

// remove deletes the run's files, the workflow and the marker last, and D itself if it is then empty. It is safe to
// repeat, and if D does not exist.
func (l layout) remove() error {
	names := []string{executedFile, reportFile, profileFile, reuse.OriginFile, executor.DataDir, executor.TasksDir,
		executor.OriginalsDir, journalFile, indexFile, transfer.SpoolDir, scriptDir}
	there, err := l.names()
	if err != nil {
		return err
	}
	for _, name := range there {
		if strings.HasPrefix(name, journalFile+".bad-") {
			names = append(names, name)
		}
	}
	for _, name := range append(names, workflowFile, markerFile) {
		if err := atomicfile.RemoveAll(l.path(name)); err != nil {
			return fmt.Errorf("removing the run's directory: %w", err)
		}
	}
	_ = os.Remove(l.dir) // if it is not empty, it contains other files
	return nil
}

// purge removes the run's files and D, and describes the result. If D lacks the run's workflow, or has data but not
// tasks, which are removed later, it is now used for something else, and its data are not the run's.
func (l layout) purge() (became string, err error) {
	names, err := l.names()
	if err != nil { // for example, a file in place of the directory
		return "", corral.ErrorAt(corral.Failed, "dir", "%w", err)
	}
	lacks := func(name string) bool { return !slices.Contains(names, name) }
	const another = "its directory stays: %s has no %s, so it does not belong to the run"
	switch {
	case len(names) > 0 && lacks(workflowFile):
		return fmt.Sprintf(another, l.dir, workflowFile), nil
	case !lacks(executor.DataDir) && lacks(executor.TasksDir):
		return fmt.Sprintf(another, l.dir, executor.TasksDir), nil
	}
	if err := l.remove(); err != nil {
		return "", corral.ErrorAt(corral.Failed, "dir", "%w", err)
	}
	switch names, err := l.names(); {
	case err != nil:
		return "", corral.ErrorAt(corral.Failed, "dir", "%w", err)
	case len(names) == 1:
		return fmt.Sprintf("its directory stays: %s has %s, which does not belong to the run", l.dir, names[0]), nil
	case len(names) > 1:
		const more = "its directory stays: %s has %s and %d more, which do not belong to the run"
		return fmt.Sprintf(more, l.dir, names[0], len(names)-1), nil
	}
	return "its directory was deleted", nil
}

// names lists the entries of D, or none if D does not exist.
func (l layout) names() (names []string, err error) {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// A link is one of the workflow's own inputs: its name below D/data, and the file that it represents.
type link struct{ name, source string }
