package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// userFile makes an input of the run that is a link to a user's file.
func (b *bed) userFile(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Symlink(path, filepath.Join(b.dir, executor.DataDir, name))); err != nil {
		t.Fatal(err)
	}
	return path
}

// A task that writes to an input changes the user's own file, and this is detected; if the task has copies, it changes
// only its copy.
func TestInputChangedInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		copies  bool
		script  string
		user    string
		changed []string
	}{
		{false, "echo more >> in.txt; cat other", "text\nmore\n", []string{"in.txt"}},
		{false, "printf TEXT | dd of=in.txt conv=notrunc 2>dd; true", "TEXT\n", []string{"in.txt"}}, // same size
		{false, "sed -i s/text/word/ in.txt; cat in.txt", "text\n", nil},                            // sed makes a new file
		{false, "cat in.txt other", "text\n", nil},
		{true, "echo more >> in.txt; cat in.txt", "text\n", nil},
		{true, "cmp in.txt ../../data/in.txt && echo >> other", "text\n", nil},
	} {
		b := newBed(t, dispatch.Config{}, nil)
		path := b.userFile(t, "in.txt", "text\n")
		b.data(t, "other", "x")
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		j := sh(1, b.dir, c.script)
		j.Tasks[0].Inputs, j.CopyInputs = []string{"in.txt", "other"}, c.copies
		b.d.Submit([]execution.Job{j})
		r := b.sink.awaitResults(t, 1)[1]
		if got := read(t, path); got != c.user || r.Status != execution.Done || !slices.Equal(r.Changed, c.changed) {
			t.Errorf("%s: the user's file is %q, want %q; result = %+v, want changed %q", c.script, got, c.user, r, c.changed)
		}
		for _, name := range j.Tasks[0].Inputs { // a copy that the task did not change is discarded
			_, err := os.Lstat(filepath.Join(b.dir, executor.TasksDir, j.Tasks[0].ID+".1", name))
			if want := !c.copies || strings.Contains(c.script, ">> "+name); (err == nil) != want {
				t.Errorf("%s: %s is in the task's directory: %v, want %v", c.script, name, err == nil, want)
			}
		}
	}
}

// A task that names a file among both its inputs and its outputs makes a new version of it. Each attempt begins with
// the old version, even if the previous attempt failed, or published its version and was lost before it could report.
// Travelling files behave in the same way.
func TestNewVersionOfAnInput(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"", "another directory"} {
		b := newBed(t, dispatch.Config{}, func(c *worker.Config) { c.Scratch = t.TempDir() })
		path := b.userFile(t, "db", "old\n")
		for attempt, exit := range []int{1, 0, 0} {
			j := sh(int64(attempt+1), b.dir, fmt.Sprintf("echo new >> db; exit %d", exit))
			task := &j.Tasks[0]
			task.ID, task.Attempt, task.Inputs, task.Outputs, j.Mark = "t", attempt+1, []string{"db"}, []string{"db"}, mark
			b.d.Submit([]execution.Job{j})
			r := b.sink.awaitResults(t, attempt+1)[int64(attempt+1)]
			want := "old\nnew\n"
			if exit != 0 {
				want = "old\n"
			}
			if got := read(t, b.dir, executor.DataDir, "db"); got != want || r.Exit != exit || r.Changed != nil {
				t.Errorf("after attempt %d db is %q, want %q; %+v", attempt+1, got, want, r)
			}
		}
		if got := read(t, path); got != "old\n" {
			t.Errorf("the user's file is %q", got)
		}
	}
}
