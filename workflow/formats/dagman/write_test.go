package dagman_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// written is a file of a folder while it is written.
type written struct {
	bytes.Buffer
	close func(text string)
}

func (w *written) Close() error { w.close(w.String()); return nil }

// create creates a file in the folder; names must be unique.
func (f folder) create(name string) (io.WriteCloser, error) {
	if _, ok := f[name]; ok || strings.Contains(name, "/") {
		return nil, fmt.Errorf("file %q cannot be made", name)
	}
	return &written{close: func(text string) { f[name] = text }}, nil
}

// dag returns the name of the workflow's own .dag in the folder, which is the .dag that no other .dag names as its
// sub-DAG.
func (f folder) dag() string {
	for name := range f {
		named := false
		for other, text := range f {
			named = named || other != name && slices.Contains(strings.Fields(text), name)
		}
		if strings.HasSuffix(name, ".dag") && !named {
			return name
		}
	}
	return ""
}

// Reading the written files yields the same workflow.
func TestWriteRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wf := drawWorkflow(t)
		files := folder{}
		if err := dagman.Write(wf, files.create); err != nil {
			t.Fatal(err)
		}
		again, _, err := read(files[files.dag()], files)
		if err != nil {
			t.Fatalf("Read: %v of\n%s", err, files)
		}
		if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
			t.Fatalf("written and read (-want +got):\n%s\n%s", diff, files)
		}
	})
}

// workflows returns the options for comparing two workflows.
func workflows() []cmp.Option {
	return []cmp.Option{
		cmpopts.IgnoreUnexported(workflow.Workflow{}), cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b *dag.Graph) bool {
			same := a.Len() == b.Len()
			for i := 0; same && i < a.Len(); i++ {
				same = slices.Equal(a.Parents(i), b.Parents(i))
			}
			return same
		}),
	}
}

// normal returns a workflow without the data that the format does not store: measurements, the order of files, and the
// grouping of tasks into jobs.
func normal(wf *workflow.Workflow) *workflow.Workflow {
	n := *wf
	n.Subworkflows = slices.DeleteFunc(slices.Clone(wf.Subworkflows), func(s workflow.Subworkflow) bool { return s.Job })
	n.Tasks = slices.Clone(wf.Tasks)
	for i := range n.Tasks {
		t := &n.Tasks[i]
		estimate, known := t.Estimated()
		t.Instant = known && estimate == 0
		t.Inputs, t.Outputs = slices.Sorted(slices.Values(t.Inputs)), slices.Sorted(slices.Values(t.Outputs))
		t.Execution = workflow.Execution{}
	}
	return &n
}

func drawWorkflow(t *rapid.T) *workflow.Workflow {
	n := rapid.IntRange(1, 6).Draw(t, "tasks")
	wf := &workflow.Workflow{Name: rapid.StringMatching(`[a-zé "/$.]{1,10}`).Draw(t, "name")}
	if rapid.Bool().Draw(t, "limited") {
		wf.Categories = map[string]int{"c": 2, "+all": 0}
	}
	var edges [][2]int
	for i := range n {
		wf.Tasks = append(wf.Tasks, drawTask(t, i))
		if i > 0 && rapid.Bool().Draw(t, "edge") {
			p := rapid.IntRange(0, i-1).Draw(t, "parent")
			edges = append(edges, [2]int{p, i})
			wf.Tasks[i].Inputs = append(wf.Tasks[i].Inputs, wf.Tasks[p].Outputs[0])
			if wf.Tasks[i].Names["d/own"] != "" {
				wf.Tasks[i].Names[wf.Tasks[p].Outputs[0]] = fmt.Sprintf("f%d", p)
			}
		}
	}
	if rapid.Bool().Draw(t, "final") {
		edges = drawFinal(t, wf, edges)
	}
	g, err := dag.New(n, edges)
	if err != nil {
		t.Fatal(err)
	}
	wf.Graph = g
	return wf
}

// drawFinal makes the last task a final task.
func drawFinal(draw *rapid.T, wf *workflow.Workflow, edges [][2]int) [][2]int {
	last := len(wf.Tasks) - 1
	t := &wf.Tasks[last]
	t.Control = &workflow.Control{Final: true, PreSkip: 2, Priority: rapid.IntRange(-1, 1).Draw(draw, "last priority")}
	t.Inputs, t.Stdin, t.Names = nil, "", nil
	t.Argv = []string{"/bin/true"}
	edges = slices.DeleteFunc(edges, func(e [2]int) bool { return e[1] == last })
	for i := range last {
		if !slices.ContainsFunc(edges, func(e [2]int) bool { return e[0] == i && e[1] != last }) {
			edges = append(edges, [2]int{i, last})
		}
	}
	return edges
}

func drawTask(t *rapid.T, i int) workflow.Task {
	text := rapid.StringMatching(`[a-z<&"'$()\\ ;=é#]{0,8}`)
	task := workflow.Task{
		ID:      fmt.Sprintf("t%d%s", i, rapid.StringMatching(`[a-z_#+ "é-]{0,3}`).Draw(t, "id")),
		Name:    rapid.StringMatching(`[a-z/"$ ]{1,3}`).Draw(t, "name"),
		Outputs: []string{fmt.Sprintf("d/f%d", i)},
		Resources: corral.Resources{
			CPUs: rapid.IntRange(1, 64).Draw(t, "cpus"), MemoryMiB: rapid.IntRange(0, 5000).Draw(t, "memory"),
			GPUs: rapid.IntRange(0, 2).Draw(t, "gpus"), DiskMiB: rapid.SampledFrom([]int{0, 9000}).Draw(t, "disk"),
		},
		Estimate: drawDuration(t),
		Timeout:  drawDuration(t),
		Control:  drawControl(t),
	}
	if task.Estimate == 0 {
		task.Instant = rapid.Bool().Draw(t, "instant")
	}
	task.Stdout = rapid.SampledFrom([]string{"", "out", task.Outputs[0]}).Draw(t, "stdout")
	task.Stderr = rapid.SampledFrom([]string{"", "err", task.Outputs[0]}).Draw(t, "stderr")
	switch rapid.IntRange(0, 3).Draw(t, "command") {
	case 1:
		task.Inputs, task.Argv = []string{"bin/p"}, []string{"./bin/p"}
	case 2:
		task.Argv = []string{rapid.SampledFrom([]string{"sort", "/bin/sh", "./p", "/usr/bin/env"}).Draw(t, "program")}
	}
	if len(task.Argv) > 0 {
		task.Argv = append(task.Argv, rapid.SliceOfN(text, 0, 3).Draw(t, "arguments")...)
	}
	if rapid.Bool().Draw(t, "environment") {
		task.Env = map[string]string{"K": text.Draw(t, "value"), "L_1": ""}
	}
	if rapid.Bool().Draw(t, "reads") {
		task.Inputs, task.Stdin = append(task.Inputs, "d/own", "in $x"), "in $x"
	}
	if rapid.Bool().Draw(t, "renamed") {
		task.Names = map[string]string{task.Outputs[0]: "other"}
		if slices.Contains(task.Inputs, "d/own") {
			task.Names["d/own"] = "own"
		}
		task.Stdout, task.Stderr = "", ""
	}
	if rapid.Bool().Draw(t, "retried") {
		n := rapid.IntRange(0, 9).Draw(t, "retries")
		task.Retries = &n
	} else if task.Control != nil {
		task.Control.UnlessExit = 0
	}
	if task.Control != nil && *task.Control == (workflow.Control{}) {
		task.Control = nil
	}
	if task.Control != nil && task.Control.Noop {
		task.Argv, task.Estimate, task.Instant = []string{"true"}, 0, true
		task.Inputs, task.Stdin, task.Names = nil, "", nil
	}
	return task
}

func drawControl(t *rapid.T) *workflow.Control {
	if rapid.Bool().Draw(t, "plain") {
		return nil
	}
	c := &workflow.Control{
		Noop: rapid.Bool().Draw(t, "noop"), Done: rapid.Bool().Draw(t, "done"),
		Priority:   rapid.IntRange(-3, 3).Draw(t, "priority"),
		Category:   rapid.SampledFrom([]string{"", "c", "+all", "q\"$é"}).Draw(t, "category"),
		Label:      rapid.SampledFrom([]string{"", "x", "q\"$é ,"}).Draw(t, "label"),
		PreSkip:    rapid.IntRange(-1, 1).Draw(t, "skip"),
		UnlessExit: rapid.IntRange(-1, 1).Draw(t, "unless"),
	}
	for _, script := range []**workflow.Script{&c.Pre, &c.Post, &c.Hold} {
		if rapid.Bool().Draw(t, "script") {
			*script = &workflow.Script{Argv: rapid.SliceOfN(rapid.StringMatching(`[a-z$'é]{1,3}`), 1, 3).Draw(t, "words")}
		}
	}
	if c.Pre != nil && rapid.Bool().Draw(t, "deferred") {
		c.Pre.DeferStatus, c.Pre.DeferAfter = 3, 20*time.Second
	}
	if rapid.Bool().Draw(t, "aborts") {
		status := rapid.IntRange(0, 255).Draw(t, "status")
		c.Abort = &workflow.Abort{Exit: rapid.IntRange(-1, 300).Draw(t, "exit")}
		if status > 100 {
			c.Abort.Return = &status
		}
	}
	return c
}

func drawDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int64{0, 1, 1500, 60_000_000, 3_600_000_000, 86_400_123_457}).Draw(t, "microseconds")) *
		time.Microsecond
}

// Tasks of a transformation share a description, with macros for their differences.
func TestWriteLooksAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	dag := `JOB a.1 x
VARS a.1 of="one"
JOB a.2 x
VARS a.2 of="two"
JOB b y
PARENT a.1 a.2 CHILD b
RETRY b 2 UNLESS-EXIT 3
MAXJOBS big 5
CATEGORY b big
SCRIPT POST b check $RETURN
`
	wf := mustRead(t, dag, folder{
		"x": "executable = p\narguments = -n $(of)\noutput = $(of).txt\nrequest_memory = 100\nqueue\n",
		"y": "executable = /bin/cat\narguments = \"one.txt 'two words'\"\ntransfer_input_files = one.txt\ntransfer_executable = false\nqueue\n",
	})
	files := folder{}
	if err := dagman.Write(wf, files.create); err != nil {
		t.Fatal(err)
	}
	want := folder{
		"w.dag": `SET_JOB_ATTR CorralWorkflow = "w"
MAXJOBS big 5
JOB a.1 p.sub
VARS a.1 task_arguments="\"-n one\"" task_output="one.txt"
JOB a.2 p.sub
VARS a.2 task_arguments="\"-n two\"" task_output="two.txt"
JOB b cat.sub
RETRY b 2 UNLESS-EXIT 3
CATEGORY b big
SCRIPT POST b check $RETURN
PARENT a.1 a.2 CHILD b
`,
		"p.sub": "executable = p\narguments = $(task_arguments)\noutput = $(task_output)\n" +
			"request_cpus = 1\nrequest_memory = 100\nqueue\n",
		"cat.sub": "transfer_executable = false\nexecutable = /bin/cat\narguments = \"one.txt 'two words'\"\n" +
			"transfer_input_files = one.txt\nrequest_cpus = 1\nqueue\n",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A workflow that the format cannot represent is refused, with the task in the error, and is not written in a different
// form.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	two := 2
	argv := []string{"true"}
	for want, task := range map[string]workflow.Task{
		`arguments "a\nb"`:                        {Argv: []string{"true", "a\nb"}},
		`executable "/bin/x "`:                    {Argv: []string{"/bin/x "}},
		`environment "K=a\nb"`:                    {Argv: argv, Env: map[string]string{"K": "a\nb"}},
		`transfer_input_files "a,b"`:              {Argv: argv, Inputs: []string{"a,b"}},
		`transfer_output_files "http://x"`:        {Argv: argv, Outputs: []string{"http://x"}},
		`output " o"`:                             {Argv: argv, Streams: workflow.Streams{Stdout: " o"}},
		`another name than its own of file "d/x"`: {Argv: argv, Inputs: []string{"d/x"}, Names: map[string]string{"d/x": "y"}},
		"both files with their paths and files with their bare names": {Argv: argv, Inputs: []string{"d/x", "d/y"},
			Names: map[string]string{"d/x": "x"}},
		`the category "a b"`:          {Argv: argv, Control: &workflow.Control{Category: "a b"}},
		`the script's argument "a b"`: {Argv: argv, Control: &workflow.Control{Pre: &workflow.Script{Argv: []string{"a b"}}}},
		"a script in a folder, without a name, or deferred by a fraction of a second": {
			Argv: argv, Control: &workflow.Control{Pre: &workflow.Script{Argv: argv, Dir: "d"}}},
		"an exit status that prevents retries without a number of retries": {Argv: argv, Control: &workflow.Control{UnlessExit: 1}},
		"a final task with a category, an abort, an exit status that prevents retries, or done": {
			Argv: argv, Retries: &two, Control: &workflow.Control{Final: true, UnlessExit: 1}},
	} {
		task.ID, task.Name, task.CPUs = "t", "n", 1
		g, err := dag.New(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = dagman.Write(&workflow.Workflow{Name: "w", Tasks: []workflow.Task{task}, Graph: g}, folder{}.create)
		if want = `workflow w: task "t": DAGMan's format cannot hold ` + want; corral.KindOf(err) != corral.Unsatisfiable || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

// The control of several tasks as a group is also refused if the format cannot represent it.
func TestWriteRefusesGroups(t *testing.T) {
	t.Parallel()
	one := 1
	for want, wf := range map[string]workflow.Workflow{
		`"a": DAGMan's format cannot hold the control of subworkflow "J" as a whole`: {
			Subworkflows: []workflow.Subworkflow{{Name: "J", First: 0, End: 2, Job: true, Retries: &one}},
		},
		`"b": DAGMan's format cannot hold subworkflows "S" and "T", which overlap without being nested`: {
			Subworkflows: []workflow.Subworkflow{{Name: "S", First: 0, End: 2}, {Name: "T", First: 1, End: 3}},
		},
		`"a": DAGMan's format cannot hold a priority, a label, noop or final of sub-DAG "S" as a whole`: {
			Subworkflows: []workflow.Subworkflow{{Name: "S", First: 0, End: 2, Control: &workflow.Control{Priority: 1}}},
		},
		`"a": DAGMan's format cannot hold the name "S\nJOB" of a sub-DAG`: {
			Subworkflows: []workflow.Subworkflow{{Name: "S\nJOB", First: 0, End: 2}},
		},
		`"c": DAGMan's format cannot hold an order after task "a" that does not apply to all of subworkflow "S"`: {
			Subworkflows: []workflow.Subworkflow{{Name: "S", First: 1, End: 3}},
		},
		`"d": DAGMan's format cannot hold an order after task "a" that does not apply to all of subworkflow "T"`: {
			Subworkflows: []workflow.Subworkflow{{Name: "T", First: 0, End: 2}},
		},
		`"e": DAGMan's format cannot hold the category "c" in sub-DAG "S", because its name does not begin with "S+"`: {
			Subworkflows: []workflow.Subworkflow{{Name: "S", First: 4, End: 5}},
		},
	} {
		wf.Name = "w"
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			wf.Tasks = append(wf.Tasks, workflow.Task{ID: id, Name: "n", Argv: []string{"true"}})
		}
		wf.Tasks[4].Control = &workflow.Control{Category: "c"}
		var edges [][2]int
		if strings.Contains(want, "an order") {
			edges = [][2]int{{0, 2}, {0, 3}, {1, 2}, {2, 3}}
		}
		var err error
		if wf.Graph, err = dag.New(5, edges); err != nil {
			t.Fatal(err)
		}
		err = dagman.Write(&wf, folder{}.create)
		if want = "workflow w: task " + want; corral.KindOf(err) != corral.Unsatisfiable || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

// A sub-DAG has a .dag of its own, with the statements about its nodes, and a node in the enclosing .dag, to which the
// other statements apply.
func TestWriteSubDAGs(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, `JOB A n
SUBDAG EXTERNAL S s.dag
JOB Z n
PARENT A CHILD S
PARENT S CHILD Z
RETRY S 2 UNLESS-EXIT 4
SCRIPT POST S check $RETURN
CATEGORY S few
MAXJOBS few 1
`, folder{"n": noop, "s.dag": `JOB B n
JOB C n
SUBDAG EXTERNAL T t.dag DONE
FINAL F n
PARENT B CHILD T
MAXJOBS c 3
CATEGORY B c
ABORT-DAG-ON C 7 RETURN 1
`, "t.dag": "SPLICE X x.dag\nJOB D n\n", "x.dag": "JOB E n\n"})
	files := folder{}
	if err := dagman.Write(wf, files.create); err != nil {
		t.Fatal(err)
	}
	want := folder{
		"w.dag": `SET_JOB_ATTR CorralWorkflow = "w"
MAXJOBS few 1
JOB A true.sub
SUBDAG EXTERNAL S w.S.dag
RETRY S 2 UNLESS-EXIT 4
CATEGORY S few
SCRIPT POST S check $RETURN
JOB Z true.sub
PARENT A CHILD S
PARENT S CHILD Z
`,
		"w.S.dag": `MAXJOBS c 3
JOB B true.sub
CATEGORY B c
JOB C true.sub
ABORT-DAG-ON C 7 RETURN 1
SUBDAG EXTERNAL T w.S_T.dag DONE
FINAL F true.sub
PARENT B CHILD T
`,
		"w.S_T.dag": `JOB X_E true_2.sub DONE
JOB D true.sub DONE
`,
	}
	for name, text := range want {
		if diff := cmp.Diff(text, files[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	again := mustRead(t, files["w.dag"], files)
	if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
		t.Errorf("written and read (-want +got):\n%s\n%s", diff, files)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "JOB A a\nSUBDAG EXTERNAL S s.dag\n", folder{"a": "executable = /bin/true\nqueue 2\n", "s.dag": "JOB B a\n"})
	want := []string{"the grouping of tasks into 2 jobs of several processes"}
	if diff := cmp.Diff(want, dagman.Lost(wf)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Reading the written files also yields the same workflow for any nesting of .dags.
func TestWriteRoundTripsSubDAGs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := folder{"n": noop}
		drawDAG(t, from, "w", 0)
		wf, _, err := read(from["w.dag"], from)
		if err != nil {
			t.Fatalf("Read: %v of\n%s", err, from)
		}
		files := folder{}
		if err := dagman.Write(wf, files.create); err != nil {
			t.Fatalf("Write: %v of\n%s", err, from)
		}
		again, _, err := read(files["w.dag"], files)
		if err != nil {
			t.Fatalf("Read: %v of\n%s", err, files)
		}
		if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
			t.Fatalf("written and read (-want +got):\n%s\n%s\n%s", diff, from, files)
		}
	})
}

// drawDAG generates a .dag in a folder, and the .dags nested in it.
func drawDAG(t *rapid.T, files folder, name string, depth int) {
	var text strings.Builder
	n := rapid.IntRange(1, 4).Draw(t, "nodes")
	for i := range n {
		kind := rapid.IntRange(0, 5-depth).Draw(t, "kind")
		inner := fmt.Sprintf("%s-%d", name, i)
		switch {
		case kind < 3 || depth == 3:
			fmt.Fprintf(&text, "JOB N%d n\n", i)
		case kind == 3:
			fmt.Fprintf(&text, "SPLICE N%d %s.dag\n", i, inner)
		default:
			fmt.Fprintf(&text, "SUBDAG EXTERNAL N%d %s.dag\n", i, inner)
		}
		switch {
		case kind >= 3 && depth < 3:
			drawDAG(t, files, inner, depth+1)
		case rapid.Bool().Draw(t, "category"):
			fmt.Fprintf(&text, "MAXJOBS c%d 2\nCATEGORY N%d c%d\n", i%2, i, i%2)
		case rapid.Bool().Draw(t, "retry"):
			fmt.Fprintf(&text, "RETRY N%d 2\nABORT-DAG-ON N%d 3\n", i, i)
		}
		if kind > 3 && depth < 3 && rapid.Bool().Draw(t, "whole") {
			fmt.Fprintf(&text, "RETRY N%d 3\nSCRIPT PRE N%d p\nCATEGORY N%d d\n", i, i, i)
		}
		for p := range i {
			if rapid.Bool().Draw(t, "edge") {
				fmt.Fprintf(&text, "PARENT N%d CHILD N%d\n", p, i)
			}
		}
	}
	if depth == 0 && rapid.Bool().Draw(t, "final") {
		text.WriteString("FINAL F n\n")
	}
	files[name+".dag"] = text.String()
}

func TestWriteEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	wf := mustRead(t, "JOB A x NOOP\n", nil)
	err := dagman.Write(wf, func(string) (io.WriteCloser, error) { return nil, full })
	if !errors.Is(err, full) {
		t.Errorf("Write = %v, want %v", err, full)
	}
}

// DAGMan does not accept RETRY and PRIORITY for a FINAL node, but the submit description may specify both for the
// node's job.
func TestWriteFinalWithRetries(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "JOB A x\nFINAL F f\n", folder{
		"x": "executable = p\nmax_retries = 1\nqueue\n", "f": "executable = p\nmax_retries = 3\npriority = -2\nqueue\n",
	})
	files := folder{}
	if err := dagman.Write(wf, files.create); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(files["w.dag"], "RETRY F") || strings.Contains(files["w.dag"], "PRIORITY F") {
		t.Errorf("DAGMan refuses that:\n%s", files["w.dag"])
	}
	again := mustRead(t, files["w.dag"], files)
	if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
		t.Errorf("written and read (-want +got):\n%s\n%s", diff, files)
	}
}
