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
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dagman"
)

// A file of a folder, while it is written.
type written struct {
	bytes.Buffer
	close func(text string)
}

func (w *written) Close() error { w.close(w.String()); return nil }

// create makes a file in the folder; no two have one name.
func (f folder) create(name string) (io.WriteCloser, error) {
	if _, ok := f[name]; ok || strings.Contains(name, "/") {
		return nil, fmt.Errorf("file %q cannot be made", name)
	}
	return &written{close: func(text string) { f[name] = text }}, nil
}

// dag is the name of the .dag in the folder.
func (f folder) dag() string {
	for name := range f {
		if strings.HasSuffix(name, ".dag") {
			return name
		}
	}
	return ""
}

// Reading what was written gives the same workflow.
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

// workflows are how two of them are compared.
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

// normal is a workflow without what the format does not keep: measured values, and the order of files.
func normal(wf *workflow.Workflow) *workflow.Workflow {
	n := *wf
	n.Subworkflows = nil
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

// drawFinal makes the last task a final one.
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

// Tasks of a transformation share a description, whose macros are what differs among them.
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

// What the format cannot hold is refused with the task, and not written otherwise.
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
		"files with their paths beside files with their bare names": {Argv: argv, Inputs: []string{"d/x", "d/y"},
			Names: map[string]string{"d/x": "x"}},
		`the category "a b"`:          {Argv: argv, Control: &workflow.Control{Category: "a b"}},
		`the script's argument "a b"`: {Argv: argv, Control: &workflow.Control{Pre: &workflow.Script{Argv: []string{"a b"}}}},
		"a script in a folder, without a name, or that is deferred by parts of a second": {
			Argv: argv, Control: &workflow.Control{Pre: &workflow.Script{Argv: argv, Dir: "d"}}},
		"an exit status to spare retries without a number of retries": {Argv: argv, Control: &workflow.Control{UnlessExit: 1}},
		"a final task with a category, an abort, an exit status to spare retries, or done": {
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
	for _, tt := range []struct{ dag, sub, want string }{
		{"RETRY S 1\n", "", `what is said of subworkflow "S" as a whole`},
		{"", "ABORT-DAG-ON A 2 RETURN 0\n", `an abort of subworkflow "S" alone`},
	} {
		wf := mustRead(t, "SUBDAG EXTERNAL S s.dag\n"+tt.dag, folder{"s.dag": "JOB A x NOOP\n" + tt.sub})
		want := `d/s.dag:1: task "S+A": DAGMan's format cannot hold ` + tt.want
		if err := dagman.Write(wf, folder{}.create); corral.KindOf(err) != corral.Unsatisfiable || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
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

// DAGMan takes no RETRY and no PRIORITY of a FINAL node, but the submit description may say the same of its job.
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

// Published DAGs without sub-DAGs that are more than their nodes, written and read.
func TestWriteRoundTripsPublished(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"job_dagman_splice-J-one.dag", "job_dagman_final-F.dag", "job_dagman_rm.dag", "job_dagman_splice-cat.dag",
		"job_dagman_abort-final-A.dag", "job_dagman_node_prio.dag", "job_dagman_splice_connect-B.dag",
	} {
		wf, _, err := readPublished(name)
		if err != nil {
			t.Fatal(err)
		}
		files := folder{}
		if err := dagman.Write(wf, files.create); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, _, err := read(files[files.dag()], files)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
			t.Errorf("%s: written and read (-want +got):\n%s", name, diff)
		}
	}
}
