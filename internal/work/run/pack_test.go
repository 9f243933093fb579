package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// quietAndLoud returns a workflow of a task that leaves only its output, one that prints, one that fails at first, and
// one whose stdout is an output.
func quietAndLoud() []byte {
	return document(
		spec{ID: "quiet", Out: []string{"word"}, Argv: sh("echo word > word"), Seconds: 1},
		spec{ID: "loud", After: []string{"quiet"}, In: []string{"word"}, Argv: sh("cat word; echo oh >&2"), Seconds: 1},
		spec{ID: "again", Argv: sh(`test $CORRAL_ATTEMPT = 2`), Seconds: 1},
		spec{ID: "streamed", Out: []string{"said"}, Stdout: "said", Argv: sh("echo said"), Seconds: 1},
		spec{ID: "never", After: []string{"loud"}, Argv: sh("exit 3"), Seconds: 1})
}

// A run keeps either all directories or only those of attempts that left more than their outputs. In both cases the log
// of each task is the same: from the index, from the journal, and after a restart of corrald.
func TestPackedTasksAreToldOf(t *testing.T) {
	t.Parallel()
	told := func(t *testing.T, keep bool) {
		e := newEmbedded(t, socketPath(t))
		e.worker(t, "w1")
		w := realWorld(t, e)
		defer w.stop()
		row := w.awaitOver(w.create(api.NewRun{Workflow: quietAndLoud(), Options: corral.RunOptions{Retries: 1, KeepTasks: keep}}).ID)
		entries, err := os.ReadDir(filepath.Join(row.Dir, executor.TasksDir))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		want := []string{"again.1", "loud.1", "never.1", "never.2"}
		if keep {
			want = append(want, "again.2", "quiet.1", "streamed.1")
			slices.Sort(want)
		}
		if !slices.Equal(names, want) {
			t.Errorf("with keep-tasks %v there are %q, want %q", keep, names, want)
		}
		indexed := readIndex(row)
		if indexed == nil {
			t.Fatal("there is no index")
		}
		s, err := readState(asLocal(t), row)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(listing(s), indexed.listing()); diff != "" {
			t.Errorf("the index tells otherwise of tasks (-journal +index):\n%s", diff)
		}
		said := w.logs(row.ID)
		if err := os.Remove(filepath.Join(row.Dir, indexFile)); err != nil {
			t.Fatal(err)
		}
		w.manager.indexes.index = nil
		if diff := cmp.Diff(said, w.logs(row.ID)); diff != "" {
			t.Errorf("without the index logs are others:\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{
			"quiet": "", "loud": "word\noh\n", "again": "", "streamed": "said\n", "never": "",
		}, said); diff != "" {
			t.Errorf("with keep-tasks %v logs are others:\n%s", keep, diff)
		}
		var rec executor.Record
		if err := json.Unmarshal([]byte(w.log(row.ID, "again", 0, LogRecord)), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Task != "again" || rec.Attempt != 2 || rec.Status != execution.Done || rec.Worker != "tag/w1" || len(rec.Argv) != 3 ||
			rec.EndedAt.Before(rec.StartedAt) || rec.EndedAt.Sub(rec.StartedAt) > time.Hour || rec.MeasuredBy == "" {
			t.Errorf("with keep-tasks %v the record is %+v %+v", keep, rec, rec.Result)
		}
		if err := os.RemoveAll(filepath.Join(row.Dir, executor.TasksDir)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.manager.Log(asLocal(t), row.ID, File{Task: "quiet", Attempt: 0, Name: LogStdout}); corral.KindOf(err) != corral.NotFound {
			t.Errorf("a run whose tasks are gone tells of one: %v", err)
		}
	}
	t.Run("packed", func(t *testing.T) { t.Parallel(); told(t, false) })
	t.Run("kept", func(t *testing.T) { t.Parallel(); told(t, true) })
}

// logs returns the output of each task of quietAndLoud.
func (w *world) logs(id corral.RunID) map[string]string {
	said := map[string]string{}
	for _, task := range []string{"quiet", "loud", "again", "streamed", "never"} {
		said[task] = w.log(id, task, 0, LogStdout) + w.log(id, task, 0, LogStderr)
	}
	return said
}

// A damaged index is ignored, and the index of a run that continues is removed.
func TestIndexIsNotTrusted(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t, socketPath(t))
	e.worker(t, "w1")
	w := realWorld(t, e)
	defer w.stop()
	row := w.awaitOver(w.create(api.NewRun{Workflow: quietAndLoud(), Options: corral.RunOptions{Retries: 1}}).ID)
	path := filepath.Join(row.Dir, indexFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := row
	other.Tasks.Total++
	if readIndex(row) == nil || readIndex(other) != nil {
		t.Error("the index of another number of tasks is taken")
	}
	for n := range len(text) {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if readIndex(row) != nil {
			t.Fatalf("an index of %d bytes of %d is taken", n, len(text))
		}
	}
	if tasks, err := tasksOf(t, w.manager, row.ID); err != nil || len(tasks) != 5 || tasks[4].State != corral.TaskFailed {
		t.Errorf("tasks are %+v, %v", tasks, err)
	}
	if _, err := w.manager.Resume(asLocal(t), "ada", row.ID); err != nil {
		t.Fatal(err)
	}
	row = w.awaitOver(row.ID)
	tasks, err := tasksOf(t, w.manager, row.ID)
	if err != nil || tasks[4].Attempts != 4 || readIndex(row).Attempts[4] != 4 {
		t.Errorf("after it was resumed tasks are %+v, %v", tasks, err)
	}
}
