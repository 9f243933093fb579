package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

const command = `{"id": "a", "runtimeInSeconds": 0, "command": {"program": "true"}}`

func TestRunnable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, task, execution, want string }{
		{"fine", task("a", "", `, "inputFiles": ["d/own"], "outputFiles": ["stdout", "d/x"], "x-corral": {"stdin": "d/own", "stderr": "e"}`), command, ""},
		{"no execution", task("a", "", ""), "", "it has no command (execution task: command.program)"},
		{"no program", task("a", "", ""), `{"id": "a", "command": {"arguments": ["x"]}}`, "it has no command (execution task: command.program)"},
		{"zero byte in argument", task("a", "", ""), `{"id": "a", "command": {"program": "x", "arguments": ["\u0000"]}}`, `argument "\x00" contains a zero byte`},
		{"bad variable", task("a", "", `, "x-corral": {"env": {"A=B": "c"}}`), command, `environment variable "A=B" cannot be set`},
		{"too much memory", task("a", "", `, "x-corral": {"memory_mib": 99999999999}`), command, "99999999999 MiB of memory, want at most 1073741824"},
		{"too many retries", task("a", "", `, "x-corral": {"retries": 99999}`), command, "99999 retries, want 0 to 65536"},
		{"absolute file", task("a", "", `, "inputFiles": ["/etc/passwd"]`), command, `file "/etc/passwd" is outside the run's directory`},
		{"file above", task("a", "", `, "outputFiles": ["d/../../x"]`), command, `file "d/../../x" is outside the run's directory`},
		{"empty file name", task("a", "", `, "outputFiles": [""]`), command, `file "" is outside the run's directory`},
		{"directory itself", task("a", "", `, "outputFiles": ["."]`), command, `file "." is not written in its shortest form, "."`},
		{"second name", task("a", "", `, "outputFiles": ["./x"]`), command, `file "./x" is not written in its shortest form, "x"`},
		{"record", task("a", "", `, "outputFiles": ["record.json"]`), command, `file "record.json" has the name of the record that a worker leaves`},
		{"in place", task("a", "", `, "inputFiles": ["x"], "outputFiles": ["x"]`), command, `file "x" is both its input and its output: a retry would read what the failed try wrote`},
		{"file as directory", task("a", "", `, "inputFiles": ["x/y/z"], "outputFiles": ["x"]`), command, `file "x/y/z" is below "x", which is a file too`},
		{"stdin from nowhere", task("a", "", `, "x-corral": {"stdin": "x"}`), command, `its stdin "x" is not among its input files`},
		{"stdout over input", task("a", "", `, "inputFiles": ["x"], "x-corral": {"stdout": "x"}`), command, `its output stream would overwrite its input file "x"`},
		{"stderr over input", task("a", "", `, "inputFiles": ["stderr"]`), command, `its output stream would overwrite its input file "stderr"`},
		{"stdout above", task("a", "", `, "x-corral": {"stdout": "../x"}`), command, `file "../x" is outside the run's directory`},
	} {
		err := mustRead(t, document(c.task, c.execution)).Runnable()
		var e *corral.Error
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &e) || e.Kind != corral.Invalid || err.Error() != `w.json:2: task "a": `+c.want:
			t.Errorf("%s:\n got %v\nwant w.json:2: task \"a\": %s", c.name, err, c.want)
		}
	}
}

func TestRunnableLooksAtIDs(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"a.1":                    true,
		"...":                    true,
		"a b":                    true,
		strings.Repeat("x", 200): true,
		strings.Repeat("x", 201): false,
		".":                      false,
		"..":                     false,
		"a/b":                    false,
		`a\u0000`:                false,
		`a\nb`:                   false,
	} {
		err := mustRead(t, document(task(id, "", ""), strings.Replace(command, `"a"`, `"`+id+`"`, 1))).Runnable()
		if (err == nil) != ok || err != nil && corral.KindOf(err) != corral.Invalid {
			t.Errorf("Runnable with id %.20q = %v, want ok %v", id, err, ok)
		}
	}
}

func TestRunnableOfWhatWasNotRead(t *testing.T) {
	t.Parallel()
	negative := -1
	for _, spoil := range []func(*workflow.Task){
		func(t *workflow.Task) { t.CPUs = 0 },
		func(t *workflow.Task) { t.CPUs = 1 << 20 },
		func(t *workflow.Task) { t.MemoryMiB = -1 },
		func(t *workflow.Task) { t.Retries = &negative },
		func(t *workflow.Task) { t.Timeout = -time.Second },
		func(t *workflow.Task) { t.Estimate = -time.Second },
		func(t *workflow.Task) { t.ID = "" },
	} {
		wf := mustRead(t, document(task("a", "", ""), command))
		spoil(&wf.Tasks[0])
		if err := wf.Runnable(); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%+v: Runnable = %v, want Invalid", wf.Tasks[0], err)
		}
	}
	made := &workflow.Workflow{Name: "m", Tasks: []workflow.Task{{ID: "a", CPUs: 1}}}
	if got, want := fmt.Sprint(made.Runnable()), `workflow m: task "a": it has no command (execution task: command.program)`; got != want {
		t.Errorf("Runnable = %s, want %s", got, want)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, document(
		`{"id": "a", "name": "make", "parents": [], "outputFiles": ["x", "y"]},`+
			`{"id": "b", "name": "use", "parents": ["a"], "inputFiles": ["x", "own"]},`+
			`{"id": "c", "name": "use", "parents": ["a"], "inputFiles": ["y", "own"]}`,
		`{"id": "a", "runtimeInSeconds": 1.5}, {"id": "b", "runtimeInSeconds": 2, "coreCount": 4}`))
	want := workflow.Summary{Name: "w", Tasks: 3, Edges: 2, Levels: 2, Width: 2, Transformations: 2, Files: 3, Inputs: 1,
		CriticalPath: corral.Seconds(3500 * time.Millisecond), TotalWork: 3.5, CPUWork: 9.5, Unestimated: 1}
	if diff := cmp.Diff(want, wf.Summary()); diff != "" {
		t.Errorf("Summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{1500 * time.Millisecond, 2 * time.Second, time.Minute}, wf.Estimates(time.Minute)); diff != "" {
		t.Errorf("Estimates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 4, 1}, wf.CPUs()); diff != "" {
		t.Errorf("CPUs (-want +got):\n%s", diff)
	}
}
