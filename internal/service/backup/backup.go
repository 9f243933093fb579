// Package backup writes all data that corrald must not lose into one file, while corrald works, and restores it.
//
// The file is a compressed tar archive. It contains the database as it was at one moment; the schedules of its plans
// and the workflows of its ensembles; the keys by which pilots, packages and nodes recognize this corrald; the ssh
// keys of its users, if they have their own; the list of revocations; the keys and tokens of its HTCondor pools; and
// the workflow and journal of each unfinished run. Its last entry is a manifest with the digests of all other
// entries: a file without a manifest is incomplete and is refused. Because the archive contains secrets, its mode is
// 0600.
//
// # Consistency
//
// The order of copying makes the backup consistent: first the database, then the journals. So the journals may be ahead
// of the database, as after a crash of corrald, and replay handles that. In the opposite order a row could state that a
// run is over although the journal lacks its last tasks. A journal is cut after its last complete line, because its
// writer may be in the middle of one.
//
// The archive does not contain results and task files, which belong to users and may be large; packages, which can be
// rebuilt or fetched again; or logs. ADR 99 describes what happens to changes made after the copy.
package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	format       = 1
	manifestName = "manifest.json"
	stateDir     = "state" // in the archive: the files below corrald's state directory
	runsDir      = "runs"  // in the archive: a folder for each run, by its id
)

// Files in a run's directory, in the order in which they must exist: a directory without a workflow is not a run's
// directory.
const (
	journalFile  = "journal"
	workflowFile = "workflow.json"
)

// Write writes an archive of the corrald with this layout to out and returns its manifest. scratch is a folder that
// only this user can enter, with room for a copy of the database. corrald may be running in the meantime.
func Write(ctx context.Context, l xdg.Layout, scratch string, out io.Writer) (api.Backup, error) {
	host, _ := os.Hostname() // shown to people
	compressed := gzip.NewWriter(out)
	w := &writer{ctx: ctx, tar: tar.NewWriter(compressed), m: api.Backup{
		Format: format, Corral: version.String(), MadeAt: time.Now().UTC().Truncate(time.Second), Host: host,
		Runs: map[string]string{},
	}}
	err := w.state(l, scratch)
	if err == nil {
		err = w.finish()
	}
	return w.m, errors.Join(err, w.tar.Close(), compressed.Close())
}

// A writer fills an archive and records its entries in the manifest.
type writer struct {
	ctx context.Context // of Write
	tar *tar.Writer
	m   api.Backup
}

// state writes everything but the manifest. The files that rows refer to are copied before and after the database,
// because the copied database may refer to a file that is deleted with its row meanwhile.
func (w *writer) state(l xdg.Layout, scratch string) error {
	database := filepath.Join(scratch, filepath.Base(l.Database()))
	seen := map[string]bool{}
	if err := w.ofRows(l, seen); err != nil {
		return err
	}
	var err error
	if w.m.Schema, err = store.Snapshot(w.ctx, l.Database(), database); err != nil {
		return err
	}
	if err := w.file(below(l, l.Database()), database); err != nil {
		return err
	}
	if err := w.ofRows(l, seen); err != nil {
		return err
	}
	keys, err := keysOf(l)
	if err != nil {
		return err
	}
	for _, name := range keys {
		if err := w.file(below(l, name), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return w.runs(database)
}

// below returns the archive name of a file below corrald's state directory.
func below(l xdg.Layout, name string) string {
	rel, err := filepath.Rel(l.State, name)
	if err != nil {
		panic(err) // unreachable: both are absolute
	}
	return path.Join(stateDir, filepath.ToSlash(rel))
}

// keysOf lists the files that cannot be recreated, because holders of the old keys would be refused. Some of the files
// may not exist.
func keysOf(l xdg.Layout) ([]string, error) {
	all := []string{l.Key(), l.PackageKey(), store.RevokedOf(l.Database())}
	for _, pattern := range []string{
		filepath.Join(l.Certificate(), "*"),            // pilots in queues expect this certificate and address
		filepath.Join(l.Owners(), "*", ".ssh", "id_*"), // for corrald's logins on behalf of other users
		filepath.Join(l.Owners(), "*", ".ssh", "known_hosts"),
		filepath.Join(l.Pools(), "*", "token"),
		filepath.Join(l.Pools(), "*", "pool", "keys", "*"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// ofRows writes the files that rows refer to, plans' schedules and ensembles' workflows, unless they were written
// before.
func (w *writer) ofRows(l xdg.Layout, seen map[string]bool) error {
	schedules, err := filepath.Glob(filepath.Join(store.SchedulesOf(l.Database()), "*.jsonl"))
	if err != nil {
		return err
	}
	workflows, err := filepath.Glob(filepath.Join(l.Ensembles(), "*", "*.json"))
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(schedules, workflows) {
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := w.file(below(l, name), name); err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted with its row
			return err
		}
	}
	return nil
}

// runs writes the workflow and journal of each unfinished run in the copied database. A run whose directory is
// missing has no files to save.
func (w *writer) runs(database string) error {
	dirs, err := store.RunsOf(w.ctx, database)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(dirs)) {
		dir, name := dirs[id], strconv.FormatInt(int64(id), 10)
		err := w.file(path.Join(runsDir, name, workflowFile), filepath.Join(dir, workflowFile))
		if err == nil {
			err = w.lines(path.Join(runsDir, name, journalFile), filepath.Join(dir, journalFile))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("run %d: %w", id, err)
		}
		w.m.Runs[name] = dir
	}
	return nil
}

// file writes a file under a name.
func (w *writer) file(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return corral.Errorf(corral.Invalid, "%s is not a file", from)
	}
	return w.entry(name, info.Size(), f)
}

// lines writes a file to which others append, up to the end of its last complete line.
func (w *writer) lines(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := wholeLines(f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	return w.entry(name, end, io.NewSectionReader(f, 0, end))
}

// wholeLines returns the offset of the end of a file's last complete line, searching backward from its end.
func wholeLines(f io.ReadSeeker) (int64, error) {
	const piece = 64 << 10
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	for end > 0 {
		begin := max(0, end-piece)
		if _, err := f.Seek(begin, io.SeekStart); err != nil {
			return 0, err
		}
		b := make([]byte, end-begin)
		if _, err := io.ReadFull(f, b); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// entry writes one entry of exactly size bytes.
func (w *writer) entry(name string, size int64, content io.Reader) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600,
		ModTime: w.m.MadeAt})
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	digest := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w.tar, digest), content, size); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	w.m.Files = append(w.m.Files,
		api.BackupFile{Name: name, SizeBytes: size, SHA256: hex.EncodeToString(digest.Sum(nil))})
	return nil
}

// finish writes the manifest, the last entry.
func (w *writer) finish() error {
	text, err := json.MarshalIndent(w.m, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err) // unreachable: it has only plain fields
	}
	err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(text)), Mode: 0o600,
		ModTime: w.m.MadeAt})
	if err == nil {
		_, err = w.tar.Write(text)
	}
	return wrap.Errorf(err, "writing the manifest")
}
