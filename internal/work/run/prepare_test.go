package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/store"
)

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newSimCluster())
	defer w.stop()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := document(spec{ID: "one", In: []string{"in.txt", "sub/more.txt"}})
	plain := document(spec{ID: "one"})
	tests := []struct {
		name string
		req  api.NewRun
		want string
	}{
		{"junk", api.NewRun{WorkflowName: "w.json", Workflow: bytes.Repeat([]byte("x"), 10<<20)}, "w.json:1"},
		{"no task", api.NewRun{Workflow: []byte(`{}`)}, ""},
		{"cycle", api.NewRun{Workflow: document(spec{ID: "a", After: []string{"b"}}, spec{ID: "b", After: []string{"a"}})}, "cycle"},
		{"not runnable", api.NewRun{Workflow: document(spec{ID: "a", In: []string{"../x"}})}, "outside the run's directory"},
		{"missing inputs", api.NewRun{Workflow: good, SourceDir: full}, "in.txt (no such file or directory), sub/more.txt (no such file"},
		{"relative source", api.NewRun{Workflow: good, SourceDir: "here"}, "source_dir"},
		{"full dir", api.NewRun{Workflow: plain, Dir: full}, full + " is not empty: it has x"},
		{"file for a dir", api.NewRun{Workflow: plain, Dir: filepath.Join(full, "x")}, "not a directory"},
		{"clustering", api.NewRun{Workflow: plain, Options: corral.RunOptions{Clustering: "diagonal"}}, "clustering"},
		{"no groups", api.NewRun{Workflow: plain, Options: corral.RunOptions{Clustering: "horizontal=0"}}, "clustering"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.prepare(tt.req)
			if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Prepare: %v (%s), want invalid with %q", err, corral.KindOf(err), tt.want)
			}
			err = w.check(tt.req)
			if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: %v (%s), want invalid with %q", err, corral.KindOf(err), tt.want)
			}
		})
	}
	for dir, want := range map[string]int{w.dir: 0, full: 1} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != want {
			t.Errorf("%d entries in %s, %v; want %d: something was made", len(left), dir, err, want)
		}
	}
}

// TestCheckMakesNothing: a suitable directory is accepted, but not created.
func TestCheckMakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newSimCluster())
	defer w.stop()
	empty := t.TempDir()
	for _, dir := range []string{"", empty, filepath.Join(empty, "new", "deep")} {
		if err := w.check(api.NewRun{Workflow: document(spec{ID: "one"}), Dir: dir}); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("%d entries, %v; want none", len(left), err)
	}
}

func TestPrepareLaysOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster())
		defer w.stop()
		source := t.TempDir()
		for _, name := range []string{"in.txt", "sub/more.txt"} {
			path := filepath.Join(source, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text := document(spec{ID: "one", In: []string{"in.txt", "sub/more.txt"}, Out: []string{"out"}},
			spec{ID: "two", After: []string{"one"}, In: []string{"out"}})
		row := w.create(api.NewRun{Workflow: text, SourceDir: source, Labels: map[string]string{"k": "v"}})
		if !strings.HasPrefix(row.Dir, w.dir+"/test-") {
			t.Errorf("directory %s is not below %s", row.Dir, w.dir)
		}
		scattered, err := atomicfile.Scattered(w.dir)
		if known := atomicfile.Scatter(source) == nil; scattered != known {
			t.Errorf("runs are scattered: %t (%v), want %t", scattered, err, known)
		}
		wanted := corral.RunOptions{Clustering: "none", CrashLimit: 5, Stall: s(300), DefaultRuntime: s(60)}
		if row.Options != wanted || row.Labels["k"] != "v" || row.Workflow != "test" {
			t.Errorf("row = %+v", row)
		}
		if info, err := os.Stat(row.Dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if got, err := os.ReadFile(filepath.Join(row.Dir, workflowFile)); err != nil || !bytes.Equal(got, text) {
			t.Errorf("workflow.json is not as it was given (%v)", err)
		}
		for _, name := range []string{"in.txt", "sub/more.txt"} {
			if got, err := os.Readlink(filepath.Join(row.Dir, "data", name)); err != nil || got != filepath.Join(source, name) {
				t.Errorf("data/%s is a link to %s, %v", name, got, err)
			}
		}
		synctest.Wait() // Run may have begun only after Start
		if (layout{row.Dir}).unfinished() {
			t.Error("the directory of a run that was started is marked as unfinished")
		}
	})
}

func TestPreparedIsDiscarded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster())
		defer w.stop()
		r := api.NewRun{Workflow: document(spec{ID: "one"}), Dir: filepath.Join(t.TempDir(), "d")}
		p, err := w.prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.prepare(r); corral.KindOf(err) != corral.Conflict {
			t.Errorf("the same directory twice: %v, want a conflict", err)
		}
		if err := p.Discard(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(r.Dir); !os.IsNotExist(err) {
			t.Errorf("after Discard: %v", err)
		}
		w.create(r)
	})
}

// If the file system refuses a write, for example because it is full, the error is reported and no files remain.
func TestDirectoryCannotBeFilled(t *testing.T) {
	t.Parallel()
	l := layout{filepath.Join(t.TempDir(), "d")}
	err := l.create(text("{}"), []link{{name: strings.Repeat("x", 300), source: "/nowhere"}})
	if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "making the run's directory") {
		t.Errorf("create: %v (%s), want it to fail", err, corral.KindOf(err))
	}
	if _, err := os.Lstat(l.dir); !os.IsNotExist(err) {
		t.Errorf("after a failure: %v, want nothing there", err)
	}
}

// corrald may die between the preparation of a directory and the commit of its row, or between the commit and the
// start.
func TestUnfinishedDirectories(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		elsewhere := api.NewRun{Workflow: document(spec{ID: "one"}), Dir: filepath.Join(t.TempDir(), "d")}
		known := api.NewRun{Workflow: document(spec{ID: "two"}), Dir: filepath.Join(t.TempDir(), "k")}
		var prepared []*Prepared
		for _, r := range []api.NewRun{{Workflow: document(spec{ID: "orphan"})}, elsewhere, known} {
			p, err := w.prepare(r)
			if err != nil {
				t.Fatal(err)
			}
			prepared = append(prepared, p)
		}
		var row corral.Run
		w.stop()
		w.write(func(tx *store.Tx) (err error) {
			row, err = prepared[2].Insert(tx, (*store.Tx).CreateRun)
			return err
		})
		foreign := filepath.Join(w.dir, "foreign")
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		w.start()
		defer func() { w.stop() }()
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("the run that was committed is %s: %s", row.State, row.Reason)
		}
		left, err := filepath.Glob(filepath.Join(w.dir, "*"))
		if diff := cmp.Diff([]string{foreign}, left); err != nil || diff != "" {
			t.Errorf("left below the default directory (-want +got):\n%s", diff)
		}
		again := w.awaitOver(w.create(elsewhere).ID)
		if again.State != corral.RunSucceeded {
			t.Errorf("the run in a directory that was begun before is %s: %s", again.State, again.Reason)
		}
		if _, err := w.prepare(known); corral.KindOf(err) != corral.Invalid {
			t.Errorf("a directory that is a run's: %v", err)
		}
	})
}

func TestUnfinishedDirectoryOfKnownRunIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster())
		defer func() { w.stop() }()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "one"}), Dir: filepath.Join(t.TempDir(), "d")})
		synctest.Wait() // until the marker is removed
		marker := filepath.Join(row.Dir, markerFile)
		if err := os.WriteFile(marker, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.prepare(api.NewRun{Workflow: document(spec{ID: "two"}), Dir: row.Dir})
		if corral.KindOf(err) != corral.Conflict {
			t.Errorf("Prepare: %v, want a conflict", err)
		}
		if _, err := os.Stat(filepath.Join(row.Dir, workflowFile)); err != nil {
			t.Errorf("the run's files: %v", err)
		}
	})
}
