package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// ran runs one task of a packed or a kept job in a run's directory with the input "in/word", and returns the contents
// of the task's directory: nil if it was removed.
func ran(t *testing.T, pack bool, task execution.Task) (execution.Result, []string) {
	t.Helper()
	run := t.TempDir()
	if err := os.MkdirAll(filepath.Join(run, DataDir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, DataDir, "in", "word"), []byte("word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := New("tag/0", "host", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	task.ID, task.Attempt, task.Estimate = "t", 1, time.Second
	job := execution.Job{Run: 1, Seq: 1, Dir: run, CPUs: 1, Pack: pack, Tasks: []execution.Task{task}}
	r := x.Begin(&job, &job.Tasks[0]).Run(func() bool { return true })
	root := filepath.Join(run, TasksDir, "t.1")
	var left []string
	err = filepath.WalkDir(root, func(at string, _ os.DirEntry, err error) error {
		if err == nil && at != root {
			left = append(left, strings.TrimPrefix(at, root+"/"))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, name := range task.Outputs {
		if _, err := os.Stat(filepath.Join(run, DataDir, name)); (err == nil) != (r.Status == execution.Done) {
			t.Errorf("%s, and output %s: %v", r.Status, name, err)
		}
	}
	return r, left
}

// A successful task that leaves no files has no directory afterwards; if any file is left, or if the task fails, the
// whole directory is kept.
func TestPack(t *testing.T) {
	t.Parallel()
	all := []string{"record.json", "stderr", "stdout"}
	with := func(more ...string) []string { return slices.Sorted(slices.Values(append(more, all...))) }
	sh := func(script string) execution.Task { return execution.Task{Argv: []string{"sh", "-c", script}} }
	files := func(script string) execution.Task {
		task := sh(script)
		task.Inputs, task.Outputs = []string{"in/word"}, []string{"out/deep/word", "flat"}
		return task
	}
	streamed := files("cat in/word; cp in/word flat")
	streamed.Stdout = "out/deep/word"
	for name, c := range map[string]struct {
		task execution.Task
		want []string
	}{
		"nothing":                {sh(":"), nil},
		"a line on stdout":       {sh("echo x"), all},
		"a line on stderr":       {sh("echo x >&2"), all},
		"a failure":              {sh("exit 3"), all},
		"a command that is none": {execution.Task{Argv: []string{"/no/such"}}, all},
		"a file":                 {sh(": > scratch"), with("scratch")},
		"a folder":               {sh("mkdir -p a/b"), with("a", "a/b")},
		"its streams are gone":   {sh("rm stdout stderr"), nil},
		"a link":                 {sh("ln -s nowhere link"), with("link")},
		"inputs and outputs":     {files("cp in/word out/deep/word; cp in/word flat"), nil},
		"stdout is an output":    {streamed, nil},
		"an input replaced": {files("cp in/word out/deep/word; cp in/word flat; rm in/word; echo y > in/word"),
			with("in", "in/word", "out", "out/deep")},
		"a file beside inputs": {files("cp in/word out/deep/word; cp in/word flat; : > in/more"),
			with("in", "in/word", "in/more", "out", "out/deep")},
		"an output is missing": {files("cp in/word flat"), with("flat", "in", "in/word", "out", "out/deep")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kept := ran(t, false, c.task)
			r, left := ran(t, true, c.task)
			slices.Sort(c.want)
			if !slices.Equal(slices.Sorted(slices.Values(left)), c.want) {
				t.Errorf("%s (%s) left %q, want %q", r.Status, r.Reason, left, c.want)
			}
			if len(kept) < len(all)-2 || !slices.Contains(kept, RecordFile) {
				t.Errorf("kept are %q", kept)
			}
		})
	}
}
