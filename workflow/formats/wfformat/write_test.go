package wfformat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

const schemaFile = "testdata/wfcommons/schema.json"

// Reading the written file yields the same workflow, and the file contains all fields that the published schema
// requires.
func TestWriteRoundTrips(t *testing.T) {
	t.Parallel()
	schema := readSchema(t, schemaFile)
	rapid.Check(t, func(t *rapid.T) {
		wantRoundTrip(t, schema, drawWorkflow(t))
	})
}

// For traces with few measurements, writing and reading preserves whether an estimate of 0 is valid.
func TestWriteRoundTripsOfZeros(t *testing.T) {
	t.Parallel()
	schema := readSchema(t, schemaFile)
	for name, task := range map[string]workflow.Task{
		"it began at a time":  {Execution: workflow.Execution{StartedAt: time.Unix(1, 0).UTC()}},
		"nothing is known":    {},
		"it took no time":     {Instant: true},
		"it was on a machine": {Execution: workflow.Execution{Worker: "w1"}},
	} {
		t.Run(name, func(t *testing.T) {
			task.ID, task.Name, task.Outputs, task.CPUs = "t", "step", []string{"f"}, 1
			g, err := dag.New(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantRoundTrip(t, schema, &workflow.Workflow{Name: "w", Makespan: time.Nanosecond,
				Tasks: []workflow.Task{task}, Graph: g})
		})
	}
}

func wantRoundTrip(t rapid.TB, schema map[string]any, wf *workflow.Workflow) {
	t.Helper()
	var out bytes.Buffer
	if err := wfformat.Write(&out, wf); err != nil {
		t.Fatal(err)
	}
	if err := validate(schema, "", decode(t, out.Bytes())); err != nil {
		t.Fatalf("%v in\n%s", err, out.Bytes())
	}
	again, warnings, err := wfformat.Read(context.Background(), &out, "w.json", workflow.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	if diff := diffWorkflows(wf, again); diff != "" {
		t.Fatalf("written and read (-want +got):\n%s", diff)
	}
}

// Published instances of each system, written and read.
func TestWriteRoundTripsInstances(t *testing.T) {
	t.Parallel()
	schema := readSchema(t, schemaFile)
	for _, name := range []string{
		"helloworld/helloworld-forkjoin-10-chameleon.json.gz",
		"makeflow/blast/blast-chameleon-small-001.json.gz",
		"nextflow/bacass-dirt02-001.json.gz",
		"pegasus/srasearch/srasearch-chameleon-10a-001.json.gz",
	} {
		wf, _, err := readInstance(t, filepath.Join(instances, name))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := wfformat.Write(&out, wf); err != nil {
			t.Fatal(err)
		}
		if err := validate(schema, "", decode(t, out.Bytes())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, _, err := wfformat.Read(t.Context(), &out, name, workflow.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := diffWorkflows(wf, again); diff != "" {
			t.Errorf("%s: written and read (-want +got):\n%s", name, diff)
		}
	}
}

func diffWorkflows(want, got *workflow.Workflow) string {
	graphs := cmp.Comparer(func(a, b *dag.Graph) bool {
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = slices.Equal(a.Parents(i), b.Parents(i))
		}
		return same
	})
	return cmp.Diff(want, got, graphs, cmpopts.IgnoreUnexported(workflow.Workflow{}))
}

func drawWorkflow(t *rapid.T) *workflow.Workflow {
	n := rapid.IntRange(1, 8).Draw(t, "tasks")
	wf := &workflow.Workflow{
		Name:        rapid.StringN(1, 20, -1).Draw(t, "name"),
		Description: rapid.String().Draw(t, "description"),
		CreatedAt:   drawTime(t),
		ExecutedAt:  drawTime(t),
		Makespan:    drawDuration(t),
	}
	if rapid.Bool().Draw(t, "sizes") {
		wf.FileSizes = map[string]int64{"f0": rapid.Int64Min(0).Draw(t, "size")}
	}
	if rapid.Bool().Draw(t, "described") {
		wf.Author = &workflow.Author{Name: "n", Email: "e", Country: "c"}
		wf.System = &workflow.RuntimeSystem{Name: "s", Version: "v"}
		wf.Machines = []workflow.Machine{{Name: "m", System: "linux", CPU: workflow.CPU{Cores: 2}}, {Name: "k"}}
	}
	if rapid.Bool().Draw(t, "grouped") {
		two := 2
		wf.Categories = map[string]int{"c": 0, "d": 7}
		wf.Subworkflows = []workflow.Subworkflow{{Name: "s", End: n, Retries: &two, Control: drawControl(t)}, {Name: "u", End: 1}}
	}
	var edges [][2]int
	for i := range n {
		task := drawTask(t, i)
		if wf.Makespan > 0 && task.Estimate == 0 && !task.Measured() {
			task.Instant = rapid.Bool().Draw(t, "instant")
		}
		wf.Tasks = append(wf.Tasks, task)
		if i > 0 && rapid.Bool().Draw(t, "edge") {
			p := rapid.IntRange(0, i-1).Draw(t, "parent")
			edges = append(edges, [2]int{p, i})
			wf.Tasks[i].Inputs = append(wf.Tasks[i].Inputs, wf.Tasks[p].Outputs...)
		}
	}
	g, err := dag.New(n, edges)
	if err != nil {
		t.Fatal(err)
	}
	wf.Graph = g
	return wf
}

func drawTask(t *rapid.T, i int) workflow.Task {
	text := rapid.StringMatching(`[a-z<&"\\ é]{1,8}`)
	task := workflow.Task{
		ID:      fmt.Sprintf("t%s%d", rapid.StringMatching(`([a-z_#-]|[+:_/ é"]){0,2}`).Draw(t, "id"), i),
		Name:    text.Draw(t, "name"),
		Outputs: []string{fmt.Sprintf("f%d", i)},
		Resources: corral.Resources{
			CPUs: rapid.IntRange(1, 64).Draw(t, "cpus"), MemoryMiB: rapid.IntRange(0, 5000).Draw(t, "memory"),
			GPUs: rapid.IntRange(0, 2).Draw(t, "gpus"), DiskMiB: rapid.SampledFrom([]int{0, 9000}).Draw(t, "disk"),
		},
		Estimate: drawDuration(t),
		Timeout:  drawDuration(t),
		Streams: workflow.Streams{
			Stdin:  rapid.SampledFrom([]string{"", "in"}).Draw(t, "stdin"),
			Stdout: rapid.SampledFrom([]string{"", "out"}).Draw(t, "stdout"),
			Stderr: rapid.SampledFrom([]string{"", "err"}).Draw(t, "stderr"),
		},
	}
	if rapid.Bool().Draw(t, "command") {
		task.Argv = rapid.SliceOfN(text, 1, 4).Draw(t, "argv")
	}
	if rapid.Bool().Draw(t, "environment") {
		task.Env = map[string]string{"K": text.Draw(t, "value")}
	}
	if rapid.Bool().Draw(t, "reads") {
		task.Inputs = []string{"own"}
	}
	if rapid.Bool().Draw(t, "retried") {
		n := rapid.IntRange(0, 9).Draw(t, "retries")
		task.Retries = &n
	}
	if rapid.Bool().Draw(t, "controlled") {
		task.Control = drawControl(t)
		task.Names = map[string]string{task.Outputs[0]: "name"}
	}
	if rapid.Bool().Draw(t, "executed") {
		task.Execution = drawExecution(t)
	}
	if rapid.Bool().Draw(t, "as measured") {
		task.Estimate, task.MemoryMiB = task.Runtime, int((task.MemoryBytes+1<<20-1)>>20)
	}
	return task
}

func drawControl(t *rapid.T) *workflow.Control {
	number := rapid.IntRange(-2, 300)
	c := &workflow.Control{
		Noop: rapid.Bool().Draw(t, "noop"), Done: rapid.Bool().Draw(t, "done"), Final: rapid.Bool().Draw(t, "final"),
		Priority: number.Draw(t, "priority"), Category: rapid.SampledFrom([]string{"", "c"}).Draw(t, "category"),
		Label:   rapid.SampledFrom([]string{"", "x", "y\n"}).Draw(t, "label"),
		PreSkip: number.Draw(t, "skip"), UnlessExit: number.Draw(t, "unless"),
	}
	if rapid.Bool().Draw(t, "scripts") {
		c.Pre = &workflow.Script{Argv: []string{"pre", "$JOB"}, Dir: "d", DeferStatus: 1, DeferAfter: time.Minute}
		c.Post, c.Hold = &workflow.Script{Argv: []string{"post"}}, &workflow.Script{Argv: []string{"hold"}}
	}
	if rapid.Bool().Draw(t, "aborts") {
		status := number.Draw(t, "status")
		c.Abort = &workflow.Abort{Exit: number.Draw(t, "exit"), Return: &status}
	}
	return c
}

func drawExecution(t *rapid.T) workflow.Execution {
	e := workflow.Execution{
		Runtime:      drawDuration(t),
		StartedAt:    drawTime(t),
		MemoryBytes:  rapid.Int64Range(0, 1<<40).Draw(t, "rss"),
		ReadBytes:    rapid.Int64Min(0).Draw(t, "read"),
		WrittenBytes: rapid.Int64Min(0).Draw(t, "written"),
		Worker:       rapid.SampledFrom([]string{"", "w1"}).Draw(t, "worker"),
	}
	if e.Runtime > time.Second {
		e.CPUTime = rapid.Custom(drawDuration).Draw(t, "cpu")
	}
	return e
}

// drawDuration stays in the range where the format's seconds are exact.
func drawDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "duration"))
}

func drawTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "no time") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "unix"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
}

// An id with characters that the format does not allow is written as a different, unique id.
func TestWriteLegalIDs(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, document(task("E_S2", "", "")+",\n"+task("E+S2", `"E_S2"`, "")+",\n"+task("E:S2", `"E+S2"`, ""), ""))
	var out bytes.Buffer
	if err := wfformat.Write(&out, wf); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		`"id":"E_S2","parents":[],"children":["E_S2_2"]}`,
		`"id":"E_S2_2","parents":["E_S2"],"children":["E_S2_3"],"x-corral":{"id":"E+S2"}}`,
		`"id":"E_S2_3","parents":["E_S2_2"],"children":[],"x-corral":{"id":"E:S2"}}`,
		`{"id":"E_S2_3","runtimeInSeconds":0,`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	again := mustRead(t, text)
	if diff := diffWorkflows(wf, again); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
}

func TestWriteRefusesWhatTheFormatCannotHold(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, document(task("a", "", ""), ""))
	nameless, empty := *wf, *wf
	nameless.Name, empty.Tasks = "", nil
	for _, w := range []*workflow.Workflow{&nameless, &empty} {
		if err := wfformat.Write(new(bytes.Buffer), w); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Write = %v, want Invalid", err)
		}
	}
	full := errors.New("disk full")
	if err := wfformat.Write(failingWriter{full}, wf); !errors.Is(err, full) {
		t.Errorf("Write = %v, want %v", err, full)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWithExecutions(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, document(task("a", "", `, "x-corral": {"estimate_s": 9}`)+",\n"+task("b", "", ""), `{"id": "b", "runtimeInSeconds": 3}`))
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := wf.WithExecutions(start, time.Minute, []workflow.Execution{{Runtime: 8 * time.Second, CPUTime: 4 * time.Second, Worker: "w1"}, {}})
	if wf.Makespan != 0 || wf.Tasks[0].Runtime != 0 || wf.Tasks[1].Runtime != 3*time.Second {
		t.Errorf("the workflow itself changed: %+v", wf.Tasks)
	}
	var out bytes.Buffer
	if err := wfformat.Write(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"makespanInSeconds": 60`, `"executedAt": "2026-01-02T03:04:05Z"`, `"avgCPU":50`, `{"nodeName":"w1"}`, `"estimate_s":9`, `{"id":"b","runtimeInSeconds":0,`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
}

// readSchema reads a JSON schema.
func readSchema(t testing.TB, path string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, b).(map[string]any)
}

func decode(t rapid.TB, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	return v
}

// validate checks v against the parts of JSON schema for required fields and types.
func validate(schema map[string]any, path string, v any) error {
	types := map[string]bool{}
	switch v := v.(type) {
	case map[string]any:
		types["object"] = true
		return errors.Join(checkType(schema, path, types), validateObject(schema, path, v))
	case []any:
		types["array"] = true
		errs := []error{checkType(schema, path, types)}
		if least, ok := schema["minItems"].(float64); ok && float64(len(v)) < least {
			errs = append(errs, fmt.Errorf("%s: %d elements", path, len(v)))
		}
		for i, element := range v {
			errs = append(errs, validate(schema["items"].(map[string]any), fmt.Sprintf("%s[%d]", path, i), element))
		}
		return errors.Join(errs...)
	case string:
		types["string"] = true
		if least, ok := schema["minLength"].(float64); ok && float64(len(v)) < least {
			return fmt.Errorf("%s: %q is too short", path, v)
		}
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Errorf("%s: %q does not match %s", path, v, pattern)
		}
		if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, any(v)) {
			return fmt.Errorf("%s: %q is none of %v", path, v, enum)
		}
	case float64:
		types["number"], types["integer"] = true, v == float64(int64(v)) || v >= 1<<53
		if least, ok := schema["minimum"].(float64); ok && v < least {
			return fmt.Errorf("%s: %v is too small", path, v)
		}
	}
	return checkType(schema, path, types)
}

func checkType(schema map[string]any, path string, types map[string]bool) error {
	if want, _ := schema["type"].(string); want != "" && !types[want] {
		return fmt.Errorf("%s: is not of type %s", path, want)
	}
	return nil
}

func validateObject(schema map[string]any, path string, object map[string]any) error {
	var errs []error
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			errs = append(errs, fmt.Errorf("%s: %s is missing", path, name))
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range object {
		if property, ok := properties[name].(map[string]any); ok {
			errs = append(errs, validate(property, path+"."+name, value))
		} else if name != "x-corral" {
			errs = append(errs, fmt.Errorf("%s: the schema has no %s", path, name))
		}
	}
	return errors.Join(errs...)
}
