package wfformat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// document returns a WfFormat file with the given specification tasks and execution tasks, one per line: the first
// specification task is on line 2.
func document(tasks, executions string) string {
	return `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [` + "\n" +
		tasks + "\n" + `]}, "execution": {"makespanInSeconds": 0, "executedAt": "2026-01-01T00:00:00Z", "tasks": [` + "\n" +
		executions + "\n]}}}\n"
}

// task returns a specification task; more is added to its fields.
func task(id, parents, more string) string {
	return fmt.Sprintf(`{"name": "%s", "id": "%[1]s", "parents": [%s], "children": []%s}`, id, parents, more)
}

func readString(s string, opts workflow.Options) (*workflow.Workflow, []workflow.Warning, error) {
	return wfformat.Read(context.Background(), strings.NewReader(s), "w.json", opts)
}

func mustRead(t testing.TB, s string) *workflow.Workflow {
	t.Helper()
	wf, warnings, err := readString(s, workflow.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	return wf
}

func TestReadTakesEverything(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, `{
 "name": "w", "description": "d", "createdAt": "2026-01-02T03:04:05Z", "schemaVersion": "1.5",
 "author": {"name": "A", "email": "a@example.org"},
 "runtimeSystem": {"name": "S", "version": "1"},
 "workflow": {
  "specification": {
   "tasks": [
    {"name": "make", "id": "a", "parents": [], "children": ["b"], "outputFiles": ["x"]},
    {"name": "use", "id": "b", "parents": ["a"], "children": [], "inputFiles": ["x", "own", "x"],
     "x-corral": {"retries": 0, "timeout_s": 1.5, "memory_mib": 7, "gpus": 1, "disk_mib": 9, "env": {"K": "V"},
                  "stdin": "own", "stdout": "o", "stderr": "e", "estimate_s": 2}}],
   "files": [{"id": "x", "sizeInBytes": 12}]},
  "execution": {
   "makespanInSeconds": 10.5, "executedAt": "20200403T232446+0000",
   "tasks": [
    {"id": "b", "runtimeInSeconds": 4, "command": {"program": "cat", "arguments": ["-n"]}, "coreCount": 1.5},
    {"id": "a", "runtimeInSeconds": 0.25, "avgCPU": 200, "readBytes": 1, "writtenBytes": 2, "memoryInBytes": 1048577,
     "machines": ["n1"], "executedAt": "2026-01-02T03:04:05Z", "priority": 20, "energyInKWh": 0.1, "avgPowerInW": 3}],
   "machines": [{"nodeName": "n1", "cpu": {"coreCount": 4, "speedInMHz": 2400}}]}}}`)
	none := 0
	want := []workflow.Task{
		{ID: "a", Name: "make", Outputs: []string{"x"}, Resources: corral.Resources{CPUs: 1, MemoryMiB: 2},
			Estimate: 250 * time.Millisecond,
			Execution: workflow.Execution{Runtime: 250 * time.Millisecond, CPUTime: 500 * time.Millisecond, MemoryBytes: 1<<20 + 1,
				ReadBytes: 1, WrittenBytes: 2, Worker: "n1", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		{ID: "b", Name: "use", Argv: []string{"cat", "-n"}, Env: map[string]string{"K": "V"}, Inputs: []string{"x", "own"},
			Streams: workflow.Streams{Stdin: "own", Stdout: "o", Stderr: "e"}, Estimate: 2 * time.Second, Retries: &none,
			Resources: corral.Resources{CPUs: 2, MemoryMiB: 7, GPUs: 1, DiskMiB: 9},
			Timeout:   1500 * time.Millisecond, Execution: workflow.Execution{Runtime: 4 * time.Second}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if wf.Name != "w" || wf.Description != "d" || wf.Author.Email != "a@example.org" || wf.System.Name != "S" ||
		wf.FileSizes["x"] != 12 || wf.Makespan != 10500*time.Millisecond || wf.Machines[0].CPU.SpeedMHz != 2400 ||
		!wf.ExecutedAt.Equal(time.Date(2020, 4, 3, 23, 24, 46, 0, time.UTC)) || wf.CreatedAt.Second() != 5 {
		t.Errorf("workflow = %+v", wf)
	}
	if diff := cmp.Diff([]string{"own"}, wf.OwnInputs()); diff != "" {
		t.Errorf("OwnInputs (-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	one := task("a", "", "")
	for _, c := range []struct{ name, text, want string }{
		{"empty file", "", "w.json: the file is empty"},
		{"blank file", "\n\n", "w.json:2:1: the file ends before the end of the document"},
		{"cut off", "{\n\"name\": \"w\"", "w.json:2:11: the file ends before the end of the document"},
		{"junk", strings.Repeat("junk ", 2<<20), "w.json:1:1: not JSON: invalid character 'j' looking for beginning of value"},
		{"junk inside", "{\"name\": \"w\",\n \"author\": {\"name\":\n  oops}}", "w.json:3:3: not JSON: invalid character 'o' looking for beginning of value"},
		{"no comma", "{\"name\": \"w\"\n \"author\": 1}", "w.json:2:2: not JSON: invalid character '\"' after object key:value pair"},
		{"not a number", document(one, `{"id": "a", "runtimeInSeconds": NaN}`), "w.json:4:33: not JSON: invalid character 'N' looking for beginning of value"},
		{"deep nesting", `{"x": ` + strings.Repeat("[", 10<<20), "w.json:1:10007: not JSON: invalid character '[' exceeded max depth"},
		{"nested in place", strings.Repeat("[", 10<<20), "w.json:1: the document is not an object"},
		{"two documents", document(one, "") + "{}", "w.json:6: there is text after the end of the document"},
		{"key twice", "{\"name\": \"w\",\n\"name\": \"v\"}", "w.json:2: name is given twice"},
		{"version 1.3", "{\"name\": \"w\",\n\"schemaVersion\": \"1.3\"}", `w.json:2: schemaVersion is "1.3"; only WfFormat 1.4 and 1.5 are supported`},
		{"no version", `{"name": "w"}`, `w.json:1: schemaVersion is ""; only WfFormat 1.4 and 1.5 are supported`},
		{"no name", `{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [` + one + `]}}}`, "w.json:1: the workflow has no name"},
		{"no tasks", document("", ""), "w.json:5: the workflow has no tasks"},
		{"tasks of another type", strings.Replace(document(one, ""), "[", "7, [", 1), "w.json:1: workflow.specification.tasks is not an array"},
		{"field of another type", document(`{"id": "a", "name": "n",`+"\n"+`"parents": 3}`, ""), "w.json:3: workflow.specification.tasks[].parents: found number, want an array"},
		{"element of another type", document(one, "17"), "w.json:4: workflow.execution.tasks[]: found number, want an object"},
		{"version of another type", `{"schemaVersion": 1.5}`, "w.json:1: schemaVersion: found number, want a string"},
		{"file of another type", strings.Replace(document(one, ""), `]}, "exec`, `], "files": ["x"]}, "exec`, 1),
			"w.json:3: workflow.specification.files[]: found string, want an object"},
		{"no id", document(`{"name": "n"}`, ""), "w.json:2: the task has no id"},
		{"duplicate id", document(one+",\n"+task("b", "", "")+",\n"+one, ""), `w.json:4: task "a": another task has the same id (w.json:2)`},
		{"no id but in x-corral", document(`{"name": "n", "x-corral": {"id": "a"}}`, ""), "w.json:2: the task has no id"},
		{"duplicate id in x-corral", document(one+",\n"+task("b", "", `, "x-corral": {"id": "a"}`), ""),
			`w.json:3: task "a": another task has the same id (w.json:2)`},
		{"duplicate id beside x-corral", document(one+",\n"+task("b", "", "")+`,{"id": "a", "x-corral": {"id": "a+"}}`, ""),
			`w.json:3: task "a+": another task has the id "a" (w.json:2)`},
		{"field twice", document(`{"id": "a", "name": "n",`+"\n"+`"id": "b"}`, ""),
			`w.json:3: workflow.specification.tasks[]: an object has the field "id" twice: remove one of them`},
		{"field twice in two cases", document(`{"id": "a", "ID": "b"}`, ""),
			`w.json:2: workflow.specification.tasks[]: an object has the field "ID" twice: remove one of them`},
		{"field twice further in", document(one, `{"id": "a", "command": {"program": "x",`+"\n\n"+`"pro\u0067ram": "y"}}`),
			`w.json:6: workflow.execution.tasks[]: an object has the field "program" twice: remove one of them`},
		{"field twice with an unknown one", document(`{"id": "a", "x": {"y": 1, "y": 2}}`, ""),
			`w.json:2: workflow.specification.tasks[]: an object has the field "y" twice: remove one of them`},
		{"variable twice", document(task("a", "", `, "x-corral": {"env": {"A": "", "a": "", "A": "1"}}`), ""),
			`w.json:2: workflow.specification.tasks[]: an object has the field "A" twice: remove one of them`},
		{"missing parent", document(one+",\n"+task("b", `"a", "c"`, ""), ""), `w.json:3: task "b": its parent "c" does not exist`},
		{"missing child", document(`{"id": "a", "children": ["c"]}`, ""), `w.json:2: task "a": its child "c" does not exist`},
		{"cycle", document(task("z", "", "")+",\n"+task("a", `"b"`, "")+",\n"+task("b", `"c"`, "")+",\n"+task("c", `"a"`, ""), ""),
			"w.json:3: the tasks form a cycle: a -> c -> b -> a"},
		{"own parent", document(task("a", `"a"`, ""), ""), "w.json:2: the tasks form a cycle: a -> a"},
		{"two sizes", strings.Replace(document(one, ""), `]}, "exec`, `], "files": [{"id": "x", "sizeInBytes": 1}, {"id": "x", "sizeInBytes": 2}]}, "exec`, 1),
			`w.json:3: file "x" is listed with two sizes, 1 and 2 bytes`},
		{"negative runtime", document(one, `{"id": "a",`+"\n"+`"runtimeInSeconds": -1}`), "w.json:5: workflow.execution.tasks[].runtimeInSeconds: -1 is negative or too large"},
		{"huge runtime", document(one, `{"id": "a", "runtimeInSeconds": 1e300}`), "w.json:4: workflow.execution.tasks[].runtimeInSeconds: 1e300 is negative or too large"},
		{"infinite runtime", document(one, `{"id": "a", "runtimeInSeconds": 1e999}`), "w.json:4: workflow.execution.tasks[].runtimeInSeconds: 1e999 is not a number in range"},
		{"negative memory", document(one, `{"id": "a", "memoryInBytes": -5}`), "w.json:4: workflow.execution.tasks[].memoryInBytes: -5 is negative or too large"},
		{"no cpus", document(one, `{"id": "a", "coreCount": 0}`), `w.json:4: execution of task "a": coreCount: 0, want 1 to 65536`},
		{"negative cpu time", document(one, `{"id": "a", "runtimeInSeconds": 1, "avgCPU": -1}`), `w.json:4: execution of task "a": avgCPU: -1 is negative or too large`},
		{"execution of nothing", document(one, `{"id": "b"}`), `w.json:4: execution of task "b", which is missing in the specification`},
		{"two executions", document(one, `{"id": "a"},`+"\n"+`{"id": "a"}`), `w.json:5: task "a" has two executions`},
		{"unknown in x-corral", document(task("a", "", ",\n"+`"x-corral": {"retires": 3}`), ""), `w.json:3: workflow.specification.tasks[].x-corral: unknown field "retires"`},
		{"wrong type in x-corral", document(task("a", "", ",\n"+`"x-corral": {"retries":`+"\n"+`"3"}`), ""), "w.json:4: workflow.specification.tasks[].x-corral.retries: found string, want a number in range"},
		{"negative retries", document(task("a", "", `, "x-corral": {"retries": -1}`), ""), `w.json:2: task "a": x-corral: retries: -1 is negative`},
		{"negative memory_mib", document(task("a", "", `, "x-corral": {"memory_mib": -1}`), ""), `w.json:2: task "a": x-corral: memory_mib: -1 is negative`},
		{"unknown in control", document(task("a", "", `, "x-corral": {"control": {"prio": 3}}`), ""), `w.json:2: workflow.specification.tasks[].x-corral: unknown field "prio"`},
		{"subworkflow of no tasks", strings.Replace(document(one, ""), `"tasks": [`, `"x-corral": {"subworkflows": [{"name": "s", "first": 1, "end": 2}]}, "tasks": [`, 1),
			`w.json:5: x-corral: subworkflow "s": tasks 1 to 2 of 1`},
		{"negative limit", strings.Replace(document(one, ""), `"tasks": [`, `"x-corral": {"categories": {"c": -1}}, "tasks": [`, 1),
			`w.json:5: x-corral: category "c": -1 is negative`},
		{"negative timeout", document(task("a", "", `, "x-corral": {"timeout_s": -1}`), ""), "w.json:2: workflow.specification.tasks[].x-corral.timeout_s: -1 is negative or too large"},
	} {
		wf, _, err := readString(c.text, workflow.Options{})
		if err == nil || wf != nil {
			t.Errorf("%s: read %v, want an error", c.name, wf)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, err, c.want)
		}
		var e *corral.Error
		if !errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.json") {
			t.Errorf("%s: %#v is not Invalid with a place", c.name, err)
		}
	}
}

func TestReadWarns(t *testing.T) {
	t.Parallel()
	writer, other := task("a", "", `, "outputFiles": ["x"]`), task("b", "", `, "inputFiles": ["x"]`)
	for _, c := range []struct {
		name, text string
		edges      int
		want       string
	}{
		{"unknown field", document(task("a", "", `, "kind": {"x": 1}`)+",\n"+task("b", "", `, "kind": 2`), ""), 0,
			"w.json:2: unknown field workflow.specification.tasks[].kind is ignored (2 times)"},
		{"unknown field below", document(task("a", "", ""), `{"id": "a", "command": {"shell": true}}`), 0,
			"w.json:4: unknown field workflow.execution.tasks[].command.shell is ignored"},
		{"unknown object", strings.Replace(document(task("a", "", ""), ""), "{", `{"extra": {"a": [1, {}]}, `, 1), 0,
			"w.json:1: unknown field extra is ignored"},
		{"unknown time", document(task("a", "", ""), `{"id": "a", "executedAt": "yesterday"}`), 0,
			`w.json:4: execution of task "a": executedAt "yesterday" is not a supported time format`},
		{"reads without being a child", document(writer+",\n"+other, ""), 1,
			`w.json:3: task "b" reads "x", which task "a" writes, but does not come after it; it becomes its child`},
		{"two writers", document(task("a", "", `, "outputFiles": ["x"]`)+",\n"+task("b", "", `, "outputFiles": ["y", "x"]`), ""), 0,
			`w.json:3: file "x" is written by two tasks, a and b; the workflow can be planned but not run`},
		{"lists disagree", document(`{"id": "a", "parents": [], "children": ["b"]},`+"\n"+task("b", "", "")+",\n"+task("c", `"b"`, "")+",\n"+task("d", `"b"`, ""), ""), 3,
			"w.json:3: b -> c is in a list of parents but not in one of children; it is used (and 1 more like it)\n" +
				"w.json:2: a -> b is in a list of children but not in one of parents; it is used"},
	} {
		wf, warnings, err := readString(c.text, workflow.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if wf.Graph.Edges() != c.edges {
			t.Errorf("%s: %d edges, want %d", c.name, wf.Graph.Edges(), c.edges)
		}
		if _, _, err := readString(c.text, workflow.Options{Strict: true}); err == nil || err.Error() != got[0] || corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: strict: %v, want %q", c.name, err, got[0])
		}
	}
}

// The order in the lists is kept, even if a file implies another one.
func TestReadKeepsTheOrderThatFilesContradict(t *testing.T) {
	t.Parallel()
	text := document(task("a", `"b"`, `, "outputFiles": ["x"]`)+",\n"+task("b", "", `, "inputFiles": ["x"]`), "")
	wf, warnings, err := readString(text, workflow.Options{})
	if err != nil || wf.Graph.Edges() != 1 || len(warnings) != 1 || !strings.HasPrefix(warnings[0].String(),
		`w.json:3: task "b" reads "x", which is written only by a task that comes after it`) {
		t.Errorf("Read = %v, warnings %v", err, warnings)
	}
}

func TestReadOneKindOfList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		document(`{"id": "a"}, {"id": "b", "parents": ["a"]}`, ""),
		document(`{"id": "a", "children": ["b"]}, {"id": "b"}`, ""),
		document(`{"id": "a"}, {"id": "g", "parents": ["a"]}, {"id": "b", "parents": ["g"], "inputFiles": ["x"]}`, ""),
	} {
		wf := mustRead(t, text)
		if want := len(wf.Tasks) - 1; wf.Graph.Edges() != want || wf.Tasks[0].Name != "a" {
			t.Errorf("%d edges, want %d; name %q", wf.Graph.Edges(), want, wf.Tasks[0].Name)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(document(task("a", "", ""), `{"id": "a", "runtimeInSeconds": 1.5, "command": {"program": "x", "arguments": ["y"]}}`)), false)
	f.Add([]byte(document(task("a", "", `, "outputFiles": ["x"]`)+","+task("b", `"a"`, `, "inputFiles": ["x"], "x-corral": {"retries": 1, "env": {"a": "b"}}`), "")), true)
	f.Add([]byte(document(task("a", `"b"`, "")+","+task("b", `"a"`, ""), "")), false)
	f.Add([]byte(document(`{"id": "a", "children": ["b"]}, {"id": "b", "more": [{}]}`, `{"id": "a", "avgCPU": 3, "coreCount": 2}`)), false)
	f.Add([]byte(document14(`{"name": "a", "files": [{"name": "x", "link": "output", "sizeInBytes": 1}]}`, `{"name": "b", "parents": ["a"]}`)), false)
	f.Add([]byte("{"), false)
	f.Fuzz(func(t *testing.T, b []byte, strict bool) {
		wf, _, err := wfformat.Read(t.Context(), bytes.NewReader(b), "w.json", workflow.Options{Strict: strict, MaxBytes: 1 << 20})
		var e *corral.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.json")):
			t.Errorf("%#v is not Invalid with a place", err)
		case err == nil:
			var out bytes.Buffer
			if err := wfformat.Write(&out, wf); err != nil {
				t.Fatal(err)
			}
			again, warnings, err := wfformat.Read(t.Context(), &out, "again", workflow.Options{Strict: true})
			if err != nil {
				t.Fatalf("reading what was written: %v, %v", err, warnings)
			}
			if diff := cmp.Diff(wf.Summary(), again.Summary()); diff != "" {
				t.Errorf("summary changed:\n%s", diff)
			}
			_ = wf.Runnable() // must not panic
		}
	})
}

// TestRuntimesOfZero: in a trace a runtime of 0 is a measurement, even if nothing else is known about the task. It is
// not a measurement in a workflow that never ran, if x-corral states that the estimate is unknown, or if the trace
// contains no runtime for the task.
func TestRuntimesOfZero(t *testing.T) {
	t.Parallel()
	const trace = `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
 {"name": "t", "id": "bare", "parents": [], "children": []}, {"name": "t", "id": "known", "parents": [], "children": []},
 {"name": "t", "id": "unknown", "parents": [], "children": [], "x-corral": {"estimate_s": 0}},
 {"name": "t", "id": "silent", "parents": [], "children": []}, {"name": "t", "id": "none", "parents": [], "children": []}]},
"execution": {"makespanInSeconds": %d, "executedAt": "2026-01-01T00:00:00Z", "tasks": [
 {"id": "bare", "runtimeInSeconds": 0}, {"id": "known", "runtimeInSeconds": 0, "machines": ["m"]},
 {"id": "unknown", "runtimeInSeconds": 0}, {"id": "silent"}]}}}`
	for makespan, want := range map[int]string{7: "bare known", 0: "known"} {
		w := mustRead(t, fmt.Sprintf(trace, makespan))
		var estimated []string
		for i := range w.Tasks {
			if d, ok := w.Tasks[i].Estimated(); ok && d == 0 {
				estimated = append(estimated, w.Tasks[i].ID)
			}
		}
		if got := strings.Join(estimated, " "); got != want {
			t.Errorf("makespan %d: tasks %q have an estimate of 0, want %q", makespan, got, want)
		}
	}
}
