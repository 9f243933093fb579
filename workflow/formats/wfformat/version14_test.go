package wfformat_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// document14 returns a WfFormat 1.4 file whose tasks begin on line 2.
func document14(tasks ...string) string {
	return `{"name": "w", "schemaVersion": "1.4", "workflow": {"makespanInSeconds": 9, "executedAt": "2026-01-01T00:00:00Z", "tasks": [` +
		"\n" + strings.Join(tasks, ",\n") + "\n]}}\n"
}

func TestReadVersion14(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, `{
 "name": "w", "schemaVersion": "1.4", "wms": {"name": "S", "version": "1"},
 "workflow": {
  "makespanInSeconds": 10.5, "executedAt": "2026-01-02T03:04:05Z",
  "machines": [{"nodeName": "n1", "system": "linux", "memoryInBytes": 64, "cpu": {"count": 3.5, "speed": 2400, "vendor": "v"}}],
  "tasks": [
   {"name": "make_ID1", "id": "ID1", "category": "make", "type": "compute", "parents": [], "runtimeInSeconds": 0.25,
    "cores": 1.5, "avgCPU": 200, "readBytes": 1, "writtenBytes": 2, "memoryInBytes": 1048577, "machine": "n1",
    "energy": 0.1, "avgPower": 3, "priority": 20, "command": {"program": "cat", "arguments": ["-n"]},
    "files": [{"link": "output", "name": "x", "sizeInBytes": 12}, {"link": "input", "path": "data/", "name": "own", "sizeInBytes": 3}]},
   {"name": "use_ID2", "id": "ID2", "parents": ["make_ID1"], "runtimeInSeconds": 0,
    "files": [{"link": "input", "name": "x", "sizeInBytes": 12}]},
   {"name": "end", "parents": ["ID2"], "files": []}]}}`)
	want := []workflow.Task{
		{ID: "make_ID1", Name: "make", Argv: []string{"cat", "-n"}, Inputs: []string{"data/own"}, Outputs: []string{"x"},
			Resources: corral.Resources{CPUs: 2, MemoryMiB: 2}, Estimate: 250 * time.Millisecond,
			Execution: workflow.Execution{Runtime: 250 * time.Millisecond, CPUTime: 500 * time.Millisecond, MemoryBytes: 1<<20 + 1,
				ReadBytes: 1, WrittenBytes: 2, Worker: "n1"}},
		{ID: "use_ID2", Name: "use_ID2", Inputs: []string{"x"}, Resources: corral.Resources{CPUs: 1}, Instant: true},
		{ID: "end", Name: "end", Resources: corral.Resources{CPUs: 1}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	machines := []workflow.Machine{{Name: "n1", System: "linux", MemoryBytes: 64, CPU: workflow.CPU{Cores: 4, SpeedMHz: 2400, Vendor: "v"}}}
	if diff := cmp.Diff(machines, wf.Machines); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
	if wf.System.Name != "S" || wf.Makespan != 10500*time.Millisecond || wf.Graph.Edges() != 2 ||
		wf.FileSizes["data/own"] != 3 || wf.FileSizes["x"] != 12 {
		t.Errorf("%+v, %d edges", wf, wf.Graph.Edges())
	}
}

// In 1.4 two tasks may have the same name if their ids differ; such tasks are kept apart, and other tasks refer to them
// by their ids.
func TestNamesOfVersion14(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, document14(`{"name": "n", "id": "1"}`, `{"name": "n", "id": "2", "parents": ["1"]}`,
		`{"name": "m", "id": "3", "parents": ["2", "n"]}`))
	var ids []string
	for i := range wf.Tasks {
		ids = append(ids, wf.Tasks[i].ID)
	}
	if got := strings.Join(ids, " "); got != "n n_2 m" || wf.Graph.Edges() != 3 {
		t.Errorf("ids %s, %d edges, want n n_2 m with 3", got, wf.Graph.Edges())
	}
}

func TestReadRefusesInVersion14(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"no name", document14(`{"runtimeInSeconds": 1}`), "w.json:2: the task has no id"},
		{"same name", document14(`{"name": "n"}`, `{"name": "n"}`), `w.json:3: task "n": another task has the same id (w.json:2)`},
		{"unknown parent", document14(`{"name": "n", "parents": ["x"]}`), `w.json:2: task "n": its parent "x" does not exist`},
		{"unknown child", document14(`{"name": "n", "children": ["x"]}`), `w.json:2: task "n": its child "x" does not exist`},
		{"cycle", document14(`{"name": "a", "parents": ["b"]}`, `{"name": "b", "parents": ["a"]}`), "w.json:2: the tasks form a cycle: a -> b -> a"},
		{"link", document14(`{"name": "n", "files": [{"name": "x", "link": "in"}]}`), `w.json:2: task "n": file "x": link is "in", want input or output`},
		{"negative runtime", document14(`{"name": "n", "runtimeInSeconds": -1}`), "w.json:2: workflow.tasks[].runtimeInSeconds: -1 is negative or too large"},
		{"fields of 1.5", strings.Replace(document(task("a", "", ""), ""), `"1.5"`, `"1.4"`, 1), "w.json:5: the workflow has no tasks"},
		{"version behind fields of 1.5", strings.Replace(strings.Replace(document(task("a", "", ""), ""), `"schemaVersion": "1.5", `, "", 1), "\n]}}}", "\n]}}, \"schemaVersion\": \"1.4\"}", 1),
			`w.json:5: schemaVersion is "1.4", but the fields are those of 1.5`},
	} {
		_, _, err := readString(c.text, workflow.Options{})
		if corral.KindOf(err) != corral.Invalid || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// A published execution, written as version 1.4, has the same structure and times as in 1.5.
func TestVersion14SaysWhatVersion15Says(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(instances, "*", "*.json.gz"))
	deeper, err2 := filepath.Glob(filepath.Join(instances, "*", "*", "*.json.gz"))
	if files = append(files, deeper...); err != nil || err2 != nil || len(files) != 5 {
		t.Fatalf("%d files, %v, %v", len(files), err, err2)
	}
	for _, file := range files {
		new, _, err := readInstance(t, file)
		if err != nil {
			t.Fatal(err)
		}
		old, warnings, err := wfformat.Read(t.Context(), bytes.NewReader(downgraded(t, file)), file, workflow.Options{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want, got := new.Summary(), old.Summary()
		got.Transformations = want.Transformations // 1.4 has no names for them here
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %v: summary (-1.5 +1.4):\n%s", file, warnings, diff)
		}
		if diff := cmp.Diff(new.FileSizes, old.FileSizes); diff != "" {
			t.Errorf("%s: sizes (-1.5 +1.4):\n%s", file, diff)
		}
	}
}

// downgraded converts an instance of 1.5 to 1.4.
func downgraded(t *testing.T, file string) []byte {
	t.Helper()
	type object = map[string]any
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var doc object
	if err := json.NewDecoder(text).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	flow := doc["workflow"].(object)
	specification, execution := flow["specification"].(object), flow["execution"].(object)
	sizes, ran := make(map[string]any), make(map[string]object)
	for _, f := range list(specification["files"]) {
		sizes[f["id"].(string)] = f["sizeInBytes"]
	}
	for _, e := range list(execution["tasks"]) {
		ran[e["id"].(string)] = e
	}
	var tasks []object
	for _, s := range list(specification["tasks"]) {
		old := object{"name": s["id"], "type": "compute", "parents": s["parents"], "children": s["children"]}
		var files []object
		for link, key := range map[string]string{"input": "inputFiles", "output": "outputFiles"} {
			names, _ := s[key].([]any)
			for _, name := range names {
				files = append(files, object{"name": name, "link": link, "sizeInBytes": sizes[name.(string)]})
			}
		}
		old["files"] = files
		for key, renamed := range map[string]string{"runtimeInSeconds": "runtimeInSeconds", "coreCount": "cores", "avgCPU": "avgCPU",
			"readBytes": "readBytes", "writtenBytes": "writtenBytes", "memoryInBytes": "memoryInBytes", "command": "command"} {
			if v, ok := ran[s["id"].(string)][key]; ok {
				old[renamed] = v
			}
		}
		tasks = append(tasks, old)
	}
	doc["schemaVersion"] = "1.4"
	doc["workflow"] = object{"makespanInSeconds": execution["makespanInSeconds"], "executedAt": execution["executedAt"], "tasks": tasks}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func list(v any) (all []map[string]any) {
	elements, _ := v.([]any)
	for _, e := range elements {
		all = append(all, e.(map[string]any))
	}
	return all
}
