package run

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// files holds the output of attempts: "task attempt stream" → text.
type files map[string]string

// read reads a file as corrald reads the files of a run.
func (f files) read(of File, after, most int64) ([]byte, error) {
	text, ok := f[of.Task+" "+string(rune('0'+of.Attempt))+" "+of.Name]
	if !ok {
		return nil, corral.ErrorAt(corral.NotFound, "file", "none")
	}
	text = text[min(after, int64(len(text))):]
	return []byte(text[:min(most, int64(len(text)))]), nil
}

// askOutput makes a request about a run, and returns the answer as lines.
func askOutput(t interface{ Fatal(...any) }, tasks []*api.TaskStatus, at api.OutputPlace, ended bool, f files) (said []string, out api.Output) {
	out, err := newTelling(tasks, at, ended, f.read).tell()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Pieces {
		said = append(said, p.Task+" "+string(rune('0'+p.Attempt))+" "+p.Stream+": "+p.Text)
	}
	return said, out
}

func TestTelling(t *testing.T) {
	t.Parallel()
	tasks := []*api.TaskStatus{{ID: "a", State: corral.TaskRunning, Attempts: 1}, {ID: "b", State: corral.TaskWaiting}}
	f := files{"a 1 stdout": "one\ntw"}
	var at api.OutputPlace
	for _, step := range []struct {
		what  string
		do    func()
		ended bool
		want  []string
	}{
		{"whole lines of what runs", func() {}, false, []string{"a 1 stdout: one\n"}},
		{"nothing new", func() {}, false, nil},
		{"the rest of a line", func() { f["a 1 stdout"] += "o\n"; f["a 1 stderr"] = "oh\n" }, false, []string{"a 1 stdout: two\n", "a 1 stderr: oh\n"}},
		{"an attempt that ended, and the next", func() {
			f["a 1 stdout"] += "end"
			f["a 2 stdout"] = "again\n"
			tasks[0].Attempts = 2
		}, false, []string{"a 1 stdout: end", "a 2 stdout: again\n"}},
		{"tasks that are over, in the order of their ends", func() {
			f["b 1 stdout"], f["a 2 stdout"] = "b", "again\nlast"
			tasks[0].State, tasks[0].EndedAt = corral.TaskDone, time.Unix(20, 0)
			tasks[1] = &api.TaskStatus{ID: "b", State: corral.TaskDone, Attempts: 1, EndedAt: time.Unix(10, 0)}
		}, false, []string{"b 1 stdout: b", "a 2 stdout: last"}},
		{"what was told is not told again", func() {}, true, nil},
		{"a task that is retried", func() {
			tasks[1].State, tasks[1].Attempts, f["b 2 stdout"] = corral.TaskRunning, 2, "b2\n"
		}, false, []string{"b 1 stdout: b", "b 2 stdout: b2\n"}},
		{"a run that is over, whatever its tasks are", func() { f["b 2 stdout"] += "cut" }, true, []string{"b 2 stdout: cut"}},
	} {
		step.do()
		said, out := askOutput(t, tasks, at, step.ended, f)
		if diff := cmp.Diff(step.want, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		at = out.Next
	}
}

func TestTellingIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of a large file\n", 100_000)
	tasks := []*api.TaskStatus{{ID: "a", State: corral.TaskDone, Attempts: 1}}
	var at api.OutputPlace
	var got strings.Builder
	for range 10 {
		out, err := newTelling(tasks, at, true, files{"a 1 stdout": text}.read).tell()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range out.Pieces {
			n += len(p.Text)
			got.WriteString(p.Text)
		}
		if n > mostBytes {
			t.Errorf("an answer has %d bytes", n)
		}
		at = out.Next
	}
	if got.String() != text {
		t.Errorf("%d bytes were told, want %d", got.Len(), len(text))
	}
}

// A text that is too long for an answer is cut between two characters, because JSON cannot represent parts of them.
func TestTellingCutsNoCharacter(t *testing.T) {
	t.Parallel()
	text := "a" + strings.Repeat("é", mostBytes)
	for _, state := range []corral.TaskState{corral.TaskDone, corral.TaskRunning} {
		tasks := []*api.TaskStatus{{ID: "a", State: state, Attempts: 1}}
		var at api.OutputPlace
		var got strings.Builder
		for range 4 {
			_, out := askOutput(t, tasks, at, false, files{"a 1 stdout": text})
			for _, p := range out.Pieces {
				if !utf8.ValidString(p.Text) {
					t.Errorf("%s: a piece of %d bytes cuts a character", state, len(p.Text))
				}
				got.WriteString(p.Text)
			}
			at = out.Next
		}
		if !strings.HasPrefix(text, got.String()) || len(text)-got.Len() > longLine {
			t.Errorf("%s: %d bytes were told, want %d", state, got.Len(), len(text))
		}
	}
	if n := unfinished([]byte("\xa9\xa9\xa9\xa9")); n != 0 {
		t.Errorf("%d bytes that are not text are held back", n)
	}
}

// Whatever happens between two requests, each byte is sent once and in its order.
func TestTellingTellsAllOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		tasks, f, told := make([]*api.TaskStatus, n), files{}, files{}
		for i := range tasks {
			tasks[i] = &api.TaskStatus{ID: string(rune('a' + i)), State: corral.TaskWaiting}
		}
		var at api.OutputPlace
		listen := func(ended bool) {
			out, err := newTelling(tasks, at, ended, f.read).tell()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range out.Pieces {
				told[p.Task+" "+string(rune('0'+p.Attempt))+" "+p.Stream] += p.Text
			}
			at = out.Next
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			task := tasks[rapid.IntRange(0, n-1).Draw(t, "task")]
			switch task.State {
			case corral.TaskWaiting:
				task.State, task.Attempts = corral.TaskRunning, task.Attempts+1
			case corral.TaskRunning:
				stream := rapid.SampledFrom([]string{"stdout", "stderr"}).Draw(t, "stream")
				f[task.ID+" "+string(rune('0'+task.Attempts))+" "+stream] += rapid.SampledFrom([]string{"x", "line\n", "\n"}).Draw(t, "text")
				task.State = rapid.SampledFrom([]corral.TaskState{corral.TaskRunning, corral.TaskRunning, corral.TaskWaiting, corral.TaskDone}).Draw(t, "state")
				if task.State == corral.TaskWaiting && task.Attempts == 9 {
					task.State = corral.TaskFailed
				}
			}
			if rapid.Bool().Draw(t, "listen") {
				listen(false)
			}
		}
		listen(true)
		if diff := cmp.Diff(f, told); diff != "" {
			t.Errorf("told (-printed +told):\n%s", diff)
		}
	})
}

// If more tasks are running than one answer can include, each has its turn.
func TestTellingOfManyThatRun(t *testing.T) {
	t.Parallel()
	tasks := make([]*api.TaskStatus, 3*mostFiles)
	for i := range tasks {
		tasks[i] = &api.TaskStatus{ID: "silent", State: corral.TaskRunning, Attempts: 1}
	}
	tasks[len(tasks)/2].ID = "a"
	var at api.OutputPlace
	for range 1000 { // each answer includes a sixth of the tasks
		said, out := askOutput(t, tasks, at, false, files{"a 1 stdout": "here\n"})
		if at = out.Next; len(said) > 0 {
			return
		}
	}
	t.Error("a task was never looked at")
}
