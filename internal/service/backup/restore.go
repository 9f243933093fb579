package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/dbcheck"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/store"
)

// maxManifest limits the size of a manifest in bytes: it has a line or two for each run and each schedule.
const maxManifest = 256 << 20

// Restore restores the contents of the named archive. corrald must not be running: Restore holds its lock in the
// meantime. Everything is unpacked and checked before anything is changed. An existing database is replaced only with
// force, and is moved aside.
//
// A run's existing journal stays: it only grows, so it is at least as new as the archive's. The list of revocations
// also stays and receives the lines that only the archive's list has: a restore never makes a revoked token valid
// again.
func Restore(ctx context.Context, l xdg.Layout, name string, force bool) (r api.Restored, err error) {
	if err := ours(l.State); err != nil {
		return r, err
	}
	f, err := input.Open(name)
	if err != nil {
		return r, corral.ErrorAt(corral.KindOr(err, corral.Invalid), "FILE", "%w", err)
	}
	defer f.Close()
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return r, err
	}
	lock, err := store.Hold(ctx, l.Database())
	if err != nil {
		return r, fmt.Errorf("corrald must not run while its state is restored: %w", err)
	}
	defer lock.Close()
	if _, err := os.Lstat(l.Database()); err == nil && !force {
		return r, corral.ErrorAt(corral.Conflict, "--state", "%s exists: --force moves it aside and restores the "+
			"archive's", l.Database())
	}
	fresh, err := os.MkdirTemp(l.State, ".restore-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if r.Backup, err = unpack(ctx, f, fresh); err != nil {
		return r, corral.ErrorAt(corral.KindOr(err, corral.Invalid), name, "%w", err)
	}
	database := filepath.Join(fresh, filepath.FromSlash(below(l, l.Database())))
	if _, err := store.Inspect(ctx, database); err != nil {
		return r, corral.ErrorAt(corral.KindOr(err, corral.Invalid), name, "%w", err)
	}
	aside := filepath.Join(l.State, time.Now().UTC().Format("replaced-20060102T150405.000"))
	p := putter{layout: l, fresh: fresh, aside: aside}
	if err := p.runs(&r); err != nil {
		return r, err
	}
	if err := p.revoked(); err != nil {
		return r, err
	}
	if r.Aside, err = p.state(r.Files); err != nil {
		return r, err
	}
	// The recorded check was about the previous database.
	if err := os.Remove(dbcheck.File(l.Database())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	return r, nil
}

// unpack unpacks an archive below dir, a folder of our own, and checks each entry: all entries must be in the
// manifest, and none may be missing.
func unpack(ctx context.Context, from io.Reader, dir string) (m api.Backup, err error) {
	compressed, err := gzip.NewReader(from)
	if err != nil {
		return m, corral.Errorf(corral.Invalid, "it is not a backup: %w", err)
	}
	archive := tar.NewReader(compressed)
	var got []api.BackupFile
	for {
		h, err := archive.Next()
		switch {
		case ctx.Err() != nil:
			return m, context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return m, corral.Errorf(corral.Invalid, "it is an incomplete backup: its manifest is missing")
		case err != nil:
			return m, corral.Errorf(corral.Invalid, "it is an incomplete backup: %w", err)
		case h.Name == manifestName:
			text, err := input.ReadAll(archive, maxManifest)
			if err != nil {
				return m, corral.Errorf(corral.Invalid, "reading the manifest: %w", err)
			}
			return decode(text, got)
		}
		f, err := take(archive, h, dir)
		if err != nil {
			return m, err
		}
		got = append(got, f)
	}
}

// take writes one entry below dir. It accepts only plain files with names that backups contain, so that the author of
// the archive cannot choose where files are written. Each file is synced, so that it is complete after a power
// failure once it is in place.
func take(archive io.Reader, h *tar.Header, dir string) (f api.BackupFile, err error) {
	top, _, _ := strings.Cut(h.Name, "/")
	if h.Typeflag != tar.TypeReg || path.Clean(h.Name) != h.Name || !filepath.IsLocal(h.Name) ||
		top != stateDir && top != runsDir {
		return f, corral.Errorf(corral.Invalid, "%.80q is not a valid name in a backup", h.Name)
	}
	to := filepath.Join(dir, filepath.FromSlash(h.Name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return f, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return f, err
	}
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, digest), archive)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
		return f, errors.Join(
			corral.Errorf(corral.Invalid, "it is an incomplete backup: %s: %w", h.Name, err), out.Close())
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return f, fmt.Errorf("unpacking %s: %w", h.Name, err)
	}
	return api.BackupFile{Name: h.Name, SizeBytes: n, SHA256: hex.EncodeToString(digest.Sum(nil))}, nil
}

// decode reads a manifest and compares it with the unpacked entries.
func decode(text []byte, got []api.BackupFile) (m api.Backup, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, corral.Errorf(corral.Invalid, "its manifest cannot be read: %w", err)
	}
	if m.Format != format {
		return m, corral.Errorf(corral.Conflict, "it has format %d, this program supports only %d: use the corral "+
			"that wrote it, %s", m.Format, format, m.Corral)
	}
	if !slices.Equal(m.Files, got) {
		return m, corral.Errorf(corral.Invalid, "it is damaged: its content does not match its manifest")
	}
	for _, dir := range m.Runs {
		if !filepath.IsAbs(dir) {
			return m, corral.Errorf(corral.Invalid, "its manifest has a run in %.80q, which is not an absolute path",
				dir)
		}
	}
	return m, nil
}

// A putter moves unpacked files to their places. Each file is renamed into place: the folder of unpacked files is
// below corrald's state and hence on the same file system. Runs may be on another file system, so their files are
// copied.
type putter struct {
	layout xdg.Layout
	fresh  string // the folder of unpacked files
	aside  string // the folder for replaced files; created when needed
	moved  bool   // whether any file was moved aside
}

// state restores the files of corrald's state, the database last: until then a new corrald would find none, and
// Restore can be repeated. The old database's log is moved aside with it, because it would be read as the new one's.
func (p *putter) state(files []api.BackupFile) (aside string, err error) {
	names := make([]string, 0, len(files))
	database, revoked := below(p.layout, p.layout.Database()), below(p.layout, store.RevokedOf(p.layout.Database()))
	for _, f := range files {
		if f.Name != database && f.Name != revoked && strings.HasPrefix(f.Name, stateDir+"/") {
			names = append(names, f.Name)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := p.setAside(p.layout.Database() + suffix); err != nil {
			return p.aside, err
		}
	}
	for _, name := range append(names, database) {
		rel := strings.TrimPrefix(name, stateDir+"/")
		to := filepath.Join(p.layout.State, filepath.FromSlash(rel))
		err := p.setAside(to)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.Rename(filepath.Join(p.fresh, filepath.FromSlash(name)), to)
		}
		if err == nil {
			err = atomicfile.SyncFolder(filepath.Dir(to))
		}
		if err != nil {
			return p.aside, fmt.Errorf("restoring %s: %w", to, err)
		}
	}
	if !p.moved {
		return "", nil
	}
	return p.aside, nil
}

// revoked merges the archive's list of revocations into the existing one. It runs before the database is restored:
// corrald never opens a database without its list.
func (p *putter) revoked() error {
	list := store.RevokedOf(p.layout.Database())
	return store.MergeRevoked(list, filepath.Join(p.fresh, filepath.FromSlash(below(p.layout, list))))
}

// setAside moves an existing file of the state to the same place below aside.
func (p *putter) setAside(name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	rel, err := filepath.Rel(p.layout.State, name)
	if err != nil {
		return err // unreachable: both are absolute
	}
	to := filepath.Join(p.aside, rel)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	p.moved = true
	return os.Rename(name, to)
}

// runs restores the workflow and journal of each run whose directory has no journal.
func (p *putter) runs(r *api.Restored) error {
	for id, dir := range r.Runs {
		from := filepath.Join(p.fresh, runsDir, id)
		_, err := os.Lstat(filepath.Join(dir, journalFile))
		switch {
		case err == nil:
			r.RunsKept = append(r.RunsKept, dir)
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if _, err := os.Lstat(filepath.Join(from, workflowFile)); errors.Is(err, fs.ErrNotExist) {
			continue // its directory was missing when the archive was made
		}
		if err := putRun(from, dir); err != nil {
			return fmt.Errorf("restoring run %s: %w", id, err)
		}
		r.RunsPut = append(r.RunsPut, dir)
	}
	slices.Sort(r.RunsPut)
	slices.Sort(r.RunsKept)
	return nil
}

// putRun restores a run's workflow and journal, and the folders that its tasks expect. The journal is written last,
// because a run with a journal counts as complete.
func putRun(from, dir string) error {
	for _, sub := range []string{"data", "tasks"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{workflowFile, journalFile} {
		content, err := os.Open(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) { // a run that had just begun has no journal yet
			continue
		}
		if err == nil {
			err = errors.Join(copyTo(filepath.Join(dir, name), content), content.Close())
		}
		if err != nil {
			return err
		}
	}
	return atomicfile.SyncFolder(dir)
}

// copyTo writes a file atomically.
func copyTo(name string, content io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".restore-") // mode 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
