package pilot

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// newJob makes a site's root with the directory of one job, which contains the order.
func newJob(t *testing.T, o jobfiles.Order) (root, dir string) {
	t.Helper()
	root = t.TempDir()
	o.Root = root
	dir = filepath.Join(root, jobsDir, o.Tag)
	b, err := o.Encode()
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, jobfiles.File), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	return root, dir
}

// readReport returns the report that a job left.
func readReport(t *testing.T, dir string) jobfiles.Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, jobfiles.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := jobfiles.DecodeReport(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// treeBelow lists every name below dir.
func treeBelow(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, name); rel != "." {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func testLogger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func TestCleanupRemovesAllButItself(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, dir := newJob(t, jobfiles.Order{Tag: "clean-1", Cleanup: &jobfiles.Cleanup{}})
	locked := filepath.Join(root, "jobs/pilot-1/scratch/locked")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(root, "packages/ab/bin"), 0o755),
		os.WriteFile(filepath.Join(root, "packages/ab/bin/pilot"), nil, 0o755),
		os.MkdirAll(locked, 0o700),
		os.WriteFile(filepath.Join(locked, "file"), nil, 0o400),
		os.Chmod(locked, 0),
		os.Symlink(filepath.Dir(outside), filepath.Join(root, "link")),
		os.Symlink(filepath.Dir(outside), filepath.Join(root, "jobs/link")),
		os.WriteFile(filepath.Join(root, ".hidden"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	r, err := Cleanup(t.Context(), testLogger(t), dir)
	if err != nil || r.Outcome != corral.OutcomeDone {
		t.Fatalf("Cleanup = %+v, %v, want done", r, err)
	}
	want := []string{"jobs", "jobs/clean-1", "jobs/clean-1/order.json", "jobs/clean-1/report.json"}
	if diff := cmp.Diff(want, treeBelow(t, root)); diff != "" {
		t.Errorf("below the root (-want +got):\n%s", diff)
	}
	if got := readReport(t, dir); got.Outcome != r.Outcome || got.StartedAt.IsZero() || got.EndedAt.Before(got.StartedAt) {
		t.Errorf("report = %+v, want %+v", got, r)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "keep" {
		t.Errorf("what links pointed to: %q, %v", b, err)
	}
	if r, err := Cleanup(t.Context(), testLogger(t), dir); err != nil || r.Outcome != corral.OutcomeDone {
		t.Errorf("second Cleanup = %+v, %v, want done", r, err)
	}
}

func TestCleanupFailsWithReasons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    jobfiles.Order
		want string
	}{
		{"no order for it", jobfiles.Order{Tag: "a", Setup: &jobfiles.Setup{}}, "is not for a cleanup"},
		{"tag", jobfiles.Order{Tag: "a/../b", Cleanup: &jobfiles.Cleanup{}}, "is not a file name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, dir := newJob(t, c.o)
			if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Cleanup(t.Context(), testLogger(t), dir)
			if err != nil || r.Outcome != corral.OutcomeFailed || !strings.Contains(r.Reason, c.want) {
				t.Errorf("Cleanup = %+v, %v, want failed with %q", r, err, c.want)
			}
			if _, err := os.Stat(filepath.Join(root, "file")); err != nil {
				t.Errorf("something was removed: %v", err)
			}
		})
	}
	if _, err := Cleanup(t.Context(), testLogger(t), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Cleanup without order = %v, want fs.ErrNotExist", err)
	}
}

func TestSweepListsWhatStays(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := sweeper{root: root, keep: "jobs/x"}
	if err := errors.Join(root.Mkdir("a", 0o700), root.Close()); err != nil {
		t.Fatal(err)
	}
	s.empty(t.Context(), ".")
	if len(s.left) != 1 || !strings.HasPrefix(s.left[0], ".: ") {
		t.Errorf("left = %q, want the root and why", s.left)
	}
}
