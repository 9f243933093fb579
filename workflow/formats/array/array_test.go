package array

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

func TestParseNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"7":          {7},
		"0":          {0},
		"1-4":        {1, 2, 3, 4},
		"0-100:50":   {0, 50, 100},
		"0-99:50":    {0, 50},
		"9, 3-4,3":   {3, 4, 9},
		"5-5":        {5},
		"2147483647": {1<<31 - 1},
	} {
		got, err := ParseNumbers(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseNumbers(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":               `--array: "" is not a number`,
		"a":              `"a" is not a number`,
		"-1":             "is not a number",
		"1-":             "is not a number",
		"+1":             "is not a number",
		"1,,2":           `"" is not a number`,
		"1-9:0":          "is not a number",
		"3:2":            "is not a number",
		"4-3":            `"4-3" ends before it begins`,
		"2147483648":     "is not a number",
		"1-2000001":      "more than 2000000 tasks",
		"1-2000000,0":    "more than 2000000 tasks",
		"0-2147483647:1": "more than 2000000 tasks",
	} {
		if got, err := ParseNumbers(text); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseNumbers(%q) = %v, %v, want %q", text, len(got), err, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	text := "a b\n\nc\r\nlast"
	all := []string{"a b", "", "c", "last"}
	for name, tc := range map[string]struct {
		numbers []int
		want    []Element
	}{
		"all":  {nil, []Element{{1, &all[0]}, {2, &all[1]}, {3, &all[2]}, {4, &all[3]}}},
		"some": {[]int{2, 4}, []Element{{2, &all[1]}, {4, &all[3]}}},
	} {
		got, err := Lines("f", text, tc.numbers)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for name, tc := range map[string]struct {
		text    string
		numbers []int
		want    string
	}{
		"none":        {"", nil, "f: it has no lines"},
		"no such":     {"a\n", []int{1, 2}, "--array: there is no line 2: f has 1"},
		"before":      {"a\n", []int{0}, "there is no line 0"},
		"binary":      {"a\n\xff\n", nil, "f:2: the line is not UTF-8"},
		"zero byte":   {"a\nb\x00\n", nil, "f:2: the line has a zero byte"},
		"a long line": {strings.Repeat("x", maxEntry+1), nil, "f:1: the line has 131009 bytes"},
	} {
		if _, err := Lines("f", tc.text, tc.numbers); corral.KindOf(err) != corral.Invalid ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestOwnDirectories(t *testing.T) {
	t.Parallel()
	c := Command{
		Argv: []string{"./tools/solve", "-v"}, From: "/home/me", Env: map[string]string{"A": "1"},
		Inputs: []string{"tools/solve"}, Outputs: []string{"result.%{TASK}"},
		Streams: workflow.Streams{Stdin: "in/%{TASK}", Stdout: "out/%{TASK}"}, Time: time.Minute,
		Resources: corral.Resources{CPUs: 2, MemoryMiB: 512},
	}
	wf, err := c.Workflow(Numbers([]int{3, 8}))
	if err != nil {
		t.Fatal(err)
	}
	if wf.Name != "solve" || wf.Dir != "/home/me" || len(wf.Tasks) != 2 {
		t.Errorf("workflow %q in %q with %d tasks", wf.Name, wf.Dir, len(wf.Tasks))
	}
	want := workflow.Task{
		ID: "8", Name: "solve", Argv: c.Argv, Env: map[string]string{"A": "1", "CORRAL_SUBMIT_DIR": "/home/me"},
		Inputs: []string{"tools/solve", "in/8"}, Outputs: []string{"result.8", "out/8"},
		Streams:   workflow.Streams{Stdin: "in/8", Stdout: "out/8"},
		Resources: c.Resources, Estimate: time.Minute, Timeout: time.Minute,
	}
	if diff := cmp.Diff(want, wf.Tasks[1]); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c    Command
		want string
	}{
		"nothing":              {Command{}, "command: missing"},
		"binary":               {Command{Argv: []string{"a", "\xff"}}, `command: "\xff" is not UTF-8`},
		"both places":          {Command{Argv: []string{"a"}, Dir: "/d", Inputs: []string{"f"}}, "--cwd: tasks with --in"},
		"relative":             {Command{Argv: []string{"a"}, Dir: "d"}, `--cwd: "d" is not an absolute path`},
		"placeholder":          {Command{Argv: []string{"a"}, Dir: "/d/%{TASKS}"}, "--cwd: %{TASKS} stands for nothing"},
		"run in own directory": {Command{Argv: []string{"a"}, Streams: workflow.Streams{Stdout: "%{RUN}"}}, "--stdout: %{RUN} is for"},
		"one file of many":     {Command{Argv: []string{"a"}, Outputs: []string{"o"}}, `file "o" is written by task "1", too`},
		"outside":              {Command{Argv: []string{"a"}, Inputs: []string{"/etc/passwd"}}, `file "/etc/passwd" is outside`},
	} {
		if _, err := tc.c.Workflow(Numbers([]int{1, 2})); corral.KindOf(err) != corral.Invalid ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestSharedMemory: an array of a million tasks that differ only in their numbers stores its command once.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	wf, err := Command{Argv: []string{"a", "b"}, Dir: "/d", From: "/d"}.Workflow(Numbers([]int{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	if &wf.Tasks[0].Argv[0] != &wf.Tasks[1].Argv[0] {
		t.Error("each task has a command of its own")
	}
}

// TestScript runs the commands of workers in a real shell: with any folder, any stream names, any arguments.
func TestScript(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	name := rapid.StringMatching(`[ -~]{1,12}`).Filter(func(s string) bool {
		return !strings.ContainsAny(s, "/") && s != "." && s != ".." && !strings.Contains(s, "%{")
	})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(top, "")
		if err != nil {
			rt.Fatal(err)
		}
		place := filepath.Join(dir, name.Draw(rt, "folder"))
		if err := os.Mkdir(place, 0o700); err != nil {
			rt.Fatal(err)
		}
		folder, out, word := name.Draw(rt, "out's folder"), name.Draw(rt, "out"), name.Draw(rt, "word")
		c := Command{
			Argv: []string{"printf", "%s|%s", word, "end"}, Dir: place, From: dir,
			Streams: workflow.Streams{Stdout: folder + "/" + out + "%{RUN}.%{TASK}"},
		}
		wf, err := c.Workflow(Numbers([]int{5}))
		if err != nil {
			rt.Fatal(err)
		}
		cmd := exec.Command(wf.Tasks[0].Argv[0], wf.Tasks[0].Argv[1:]...)
		cmd.Dir, cmd.Env = dir, []string{"CORRAL_RUN=42", "PATH=" + os.Getenv("PATH")}
		if text, err := cmd.CombinedOutput(); err != nil {
			rt.Fatalf("%v: %s", err, text)
		}
		got, err := os.ReadFile(filepath.Join(place, folder, out+"42.5"))
		if want := word + "|end"; err != nil || string(got) != want {
			rt.Errorf("%q, %v, want %q", got, err, want)
		}
	})
}

func TestScriptStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in1"), []byte("from stdin"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(c Command) (string, error) {
		wf, err := c.Workflow(Numbers([]int{1}))
		if err != nil {
			t.Fatal(err)
		}
		text, err := exec.Command(wf.Tasks[0].Argv[0], wf.Tasks[0].Argv[1:]...).CombinedOutput()
		return string(text), err
	}
	both := workflow.Streams{Stdin: "in%{TASK}", Stdout: "log", Stderr: "log"}
	argv := []string{"sh", "-c", "cat; echo; echo oops >&2; echo end"}
	if text, err := run(Command{Argv: argv, Dir: dir, Streams: both}); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "from stdin\noops\nend\n"; err != nil || string(got) != want {
		t.Errorf("both streams: %q, %v, want %q", got, err, want)
	}
	text, err := run(Command{Argv: []string{"true"}, Dir: dir + "/absent"})
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 127 || !strings.Contains(text, dir+"/absent") {
		t.Errorf("no such folder: %q, %v, want exit status 127 and the folder", text, err)
	}
}
