package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/backup"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A home contains the files of one corrald.
type home struct {
	t *testing.T
	xdg.Layout
}

func newHome(t *testing.T) home {
	t.Helper()
	h := home{t, xdg.Below(t.TempDir())}
	for _, dir := range h.Dirs() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// put writes one of corrald's files.
func (h home) put(name, content string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) wants(name, content string) {
	h.t.Helper()
	b, err := os.ReadFile(name)
	if err != nil || string(b) != content {
		h.t.Errorf("%s has %q, %v; want %q", name, b, err, content)
	}
}

// open opens the database, until close is called.
func (h home) open() (db *store.DB, closeIt func()) {
	h.t.Helper()
	db, err := store.Open(h.t.Context(), h.Database())
	if err != nil {
		h.t.Fatal(err)
	}
	return db, sync.OnceFunc(func() {
		if err := db.Close(); err != nil {
			h.t.Error(err)
		}
	})
}

// filled returns a home with two runs, of which the first is unfinished, and with all keys.
func filled(t *testing.T) (h home, db *store.DB, closeIt func(), dirs []string) {
	h = newHome(t)
	db, closeIt = h.open()
	t.Cleanup(closeIt)
	err := storetest.All(db).Write(t.Context(), "local", func(tx *store.Tx) error {
		c, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
		for i := range 2 {
			dir := filepath.Join(h.Runs(), fmt.Sprint("run-", i))
			dirs = append(dirs, dir)
			h.put(filepath.Join(dir, "workflow.json"), "{}")
			h.put(filepath.Join(dir, "journal"), "one\ntwo\nhalf of th")
			h.put(filepath.Join(dir, "data", "result"), "42")
			if err == nil {
				_, err = tx.CreateRun(corral.Run{Owner: "local", Cluster: c.ID, Workflow: "w", Dir: dir, Tasks: corral.RunTasks{Total: 1, Waiting: 1}})
			}
		}
		if err == nil {
			_, err = tx.MoveRun(2, corral.RunSucceed, "")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.put(h.Key(), "the token key")
	h.put(h.PackageKey(), "the package key")
	h.put(filepath.Join(h.Certificate(), "cert.pem"), "a certificate")
	h.put(filepath.Join(h.Owners(), "ada", ".ssh", "id_ed25519"), "ada's key")
	h.put(filepath.Join(h.Owners(), "ada", ".ssh", "known_hosts"), "a host")
	h.put(filepath.Join(h.Owners(), "ada", ".ssh", "new-1"), "half of a key")
	h.put(filepath.Join(h.Pools(), "3", "token"), "of a pool elsewhere")
	h.put(filepath.Join(h.Pools(), "3", "pool", "keys", "POOL"), "of a pool here")
	h.put(filepath.Join(h.Pools(), "3", "pool", "spool", "job_queue.log"), "much")
	h.put(filepath.Join(store.SchedulesOf(h.Database()), "ab12.jsonl"), "{}\n")
	h.put(filepath.Join(h.Ensembles(), "CD34", "0.json"), "{}")
	h.put(filepath.Join(h.Ensembles(), "CD34", "1.json.new"), "{")
	return h, db, closeIt, dirs
}

// save makes a backup and returns its file and the names of its entries.
func (h home) save() (file string, names []string) {
	h.t.Helper()
	file = filepath.Join(h.t.TempDir(), "backup")
	m, err := backup.Save(h.t.Context(), h.Layout, file)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	return file, names
}

// A backup contains everything that cannot be recreated, and nothing else, such as users' own files.
func TestWhatABackupHas(t *testing.T) {
	t.Parallel()
	h, _, _, _ := filled(t)
	file, names := h.save()
	slices.Sort(names)
	want := []string{"runs/1/journal", "runs/1/workflow.json", "state/corrald.db", "state/corrald.db-schedules/ab12.jsonl",
		"state/ensembles/CD34/0.json", "state/owners/ada/.ssh/id_ed25519", "state/owners/ada/.ssh/known_hosts", "state/package.key",
		"state/pools/3/pool/keys/POOL", "state/pools/3/token", "state/token.key", "state/worker-port/cert.pem"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want a private file", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside it: %v, %v", left, err)
	}
}

// A backup is a snapshot of a database that is being written: it contains all or nothing of each transaction.
func TestBackupWhileWritingGoesOn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	db, closeIt := h.open()
	defer closeIt()
	stop, stopped := make(chan struct{}), make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			err := storetest.All(db).Write(t.Context(), "local", func(tx *store.Tx) error {
				for _, half := range []string{"a", "b"} {
					if _, err := tx.CreateMirror(corral.Mirror{Name: fmt.Sprintf("%s%d", half, i), Owner: "local", URL: fmt.Sprintf("http://%s/%d", half, i)}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if i == 0 {
				close(first)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-first
	for range 3 {
		file, _ := h.save()
		other := newHome(t)
		if _, err := backup.Restore(t.Context(), other.Layout, file, false); err != nil {
			t.Fatal(err)
		}
		copied, closeCopy := other.open()
		mirrors, err := store.Read(t.Context(), storetest.All(copied), func(tx *store.Tx) ([]corral.Mirror, error) { return tx.Mirrors(store.Filter{}) })
		if err != nil || len(mirrors) == 0 || len(mirrors)%2 != 0 {
			t.Errorf("%d mirrors, %v: want pairs", len(mirrors), err)
		}
		closeCopy()
	}
	close(stop)
	<-stopped
}

// A restore reproduces the original state, even elsewhere; a journal is cut after its last complete line.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	h, _, closeIt, dirs := filled(t)
	file, _ := h.save()
	closeIt()
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	other := newHome(t)
	r, err := backup.Restore(t.Context(), other.Layout, file, false)
	if err != nil || r.Aside != "" || !slices.Equal(r.RunsPut, dirs[:1]) || len(r.RunsKept) != 0 {
		t.Fatalf("Restore = %+v, %v", r, err)
	}
	other.wants(other.Key(), "the token key")
	other.wants(filepath.Join(other.Certificate(), "cert.pem"), "a certificate")
	other.wants(filepath.Join(other.Pools(), "3", "pool", "keys", "POOL"), "of a pool here")
	other.wants(filepath.Join(dirs[0], "workflow.json"), "{}")
	other.wants(filepath.Join(dirs[0], "journal"), "one\ntwo\n")
	for _, sub := range []string{"data", "tasks"} {
		if info, err := os.Stat(filepath.Join(dirs[0], sub)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", sub, err)
		}
	}
	if _, err := os.Stat(dirs[1]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that was over: %v", err)
	}
	db, closeOther := other.open()
	defer closeOther()
	runs, err := store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) ([]corral.Run, error) { return tx.Runs(store.RunFilter{}) })
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if left, err := filepath.Glob(filepath.Join(other.State, ".restore-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// An existing database is replaced only with force, and is moved aside. A run keeps its existing journal, because it
// may be newer.
func TestRestoreOverAnother(t *testing.T) {
	t.Parallel()
	h, _, closeIt, dirs := filled(t)
	file, _ := h.save()
	if _, err := backup.Restore(t.Context(), h.Layout, file, true); corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("while corrald runs: %v", err)
	}
	closeIt()
	h.put(h.Key(), "another key")
	h.put(filepath.Join(dirs[0], "journal"), "one\ntwo\nthree\n")
	if _, err := backup.Restore(t.Context(), h.Layout, file, false); corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "--force") {
		t.Errorf("without force: %v", err)
	}
	h.wants(h.Key(), "another key")
	r, err := backup.Restore(t.Context(), h.Layout, file, true)
	if err != nil || !slices.Equal(r.RunsKept, dirs[:1]) || len(r.RunsPut) != 0 {
		t.Fatalf("Restore = %+v, %v", r, err)
	}
	h.wants(h.Key(), "the token key")
	h.wants(filepath.Join(r.Aside, "token.key"), "another key")
	h.wants(filepath.Join(dirs[0], "journal"), "one\ntwo\nthree\n")
	if _, err := store.Inspect(t.Context(), filepath.Join(r.Aside, "corrald.db")); err != nil {
		t.Errorf("the database aside: %v", err)
	}
	_, closeIt = h.open()
	closeIt()
}

// An incomplete backup changes nothing.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	h, _, closeIt, _ := filled(t)
	file, _ := h.save()
	closeIt()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":           {nil, "it is not a backup"},
		"something else":  {[]byte("SQLite format 3\x00"), "it is not a backup"},
		"cut short":       {whole[:len(whole)/2], "it is an incomplete backup"},
		"no manifest":     {archiveOf(t, "state/token.key", "key"), "its manifest is missing"},
		"not its content": {archiveOf(t, "state/token.key", "key", "manifest.json", `{"format": 1, "files": []}`), "it is damaged"},
		"leads elsewhere": {archiveOf(t, "state/../../x", "key", "manifest.json", `{"format": 1}`), "is not a valid name in a backup"},
		"absolute":        {archiveOf(t, "/etc/passwd", "key", "manifest.json", `{"format": 1}`), "is not a valid name in a backup"},
		"of tomorrow":     {archiveOf(t, "manifest.json", `{"format": 2, "corral": "v9"}`), "use the corral that wrote it, v9"},
		"no database":     {archiveOf(t, "manifest.json", `{"format": 1, "files": []}`), "the database"},
		"relative run":    {archiveOf(t, "manifest.json", `{"format": 1, "files": null, "runs": {"1": "here"}}`), "not an absolute path"},
	} {
		bad := filepath.Join(t.TempDir(), "backup")
		other := newHome(t)
		other.put(bad, string(tt.content))
		_, err := backup.Restore(t.Context(), other.Layout, bad, true)
		if err == nil || !strings.Contains(err.Error(), tt.says) || corral.KindOf(err) == corral.Internal {
			t.Errorf("%s: %v (%s), want an error with %q", name, err, corral.KindOf(err), tt.says)
		}
		left, err := os.ReadDir(other.State)
		left = slices.DeleteFunc(left, func(e fs.DirEntry) bool { return e.Name() == "corrald.db.lock" })
		if err != nil || len(left) > 0 {
			t.Errorf("%s: it left %v, %v", name, left, err)
		}
	}
	if _, err := backup.Save(t.Context(), newHome(t).Layout, filepath.Join(t.TempDir(), "b")); corral.KindOf(err) != corral.NotFound {
		t.Errorf("a backup of nothing: %v", err)
	}
}

// archiveOf packs entries, given as alternating names and contents.
func archiveOf(t testing.TB, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	to := tar.NewWriter(compressed)
	for i := 0; i < len(entries); i += 2 {
		err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: entries[i], Size: int64(len(entries[i+1])), Mode: 0o600})
		if err == nil {
			_, err = io.WriteString(to, entries[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Regardless of the archive's contents, files are written only to the places of a complete backup.
func FuzzRestore(f *testing.F) {
	f.Add([]byte("no archive"))
	f.Add(archiveOf(f, "state/token.key", "key"))
	f.Add(archiveOf(f, "state/token.key", "key", "manifest.json", `{"format": 1, "files": []}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		h := newHome(t)
		file := filepath.Join(t.TempDir(), "backup")
		h.put(file, string(content))
		if _, err := backup.Restore(t.Context(), h.Layout, file, false); err == nil {
			t.Error("it was put back") // no database in it is intact
		}
		if _, err := os.Lstat(h.Key()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a key is there: %v", err)
		}
	})
}
