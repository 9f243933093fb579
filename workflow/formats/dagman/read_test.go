package dagman_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// folder maps the paths of the files beside a .dag to their contents; a text of just "/" is a folder.
type folder map[string]string

func (f folder) open(name string) (io.ReadCloser, error) {
	text, ok := f[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case text == "/":
		return nil, &fs.PathError{Op: "open", Path: name, Err: &input.NotRegularError{What: "a directory"}}
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// read reads d/w.dag with the contents of the folder d.
func read(dag string, files folder) (*workflow.Workflow, []workflow.Warning, error) {
	return dagman.Read(context.Background(), strings.NewReader(dag), "d/w.dag", workflow.Options{Open: files.open})
}

func mustRead(t *testing.T, dag string, files folder) *workflow.Workflow {
	t.Helper()
	wf, warnings, err := read(dag, files)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	return wf
}

// shown returns a workflow's structure in readable form: a line for each task, with its parents.
func shown(wf *workflow.Workflow) string {
	var text strings.Builder
	for i := range wf.Tasks {
		var parents []string
		for _, p := range wf.Graph.Parents(i) {
			parents = append(parents, wf.Tasks[p].ID)
		}
		fmt.Fprintf(&text, "%s <- %s\n", wf.Tasks[i].ID, strings.Join(parents, " "))
	}
	return text.String()
}

const noop = "executable = /bin/true\nqueue\n"

// structures are DAGs with the files beside them, and their tasks with their parents. The test with a real DAGMan also
// uses them.
var structures = []struct {
	name, dag string
	files     folder
	want      []string
}{
	{"a diamond, its order first", "parent A child B C\nPARENT B C CHILD D\nJob A x\nJob B x\nJob C x\nJob D x\n", nil,
		[]string{"A <- ", "B <- A", "C <- A", "D <- B C"}},
	{"joined lines, and a comment between them",
		"JOB \\\n  A x\n# no \\\nJOB B \\\n# no \\\n\tx\nPARENT A \\\n CHILD \\\n B", nil, []string{"A <- ", "B <- A"}},
	{"a byte order mark, and ends of lines of two bytes", "\ufeffJOB A x\r\nJOB B x\r\nPARENT A CHILD B\r\n", nil,
		[]string{"A <- ", "B <- A"}},
	{"an edge twice", "JOB A x\nJOB B x\nPARENT A A CHILD B\nPARENT A CHILD B B\n", nil, []string{"A <- ", "B <- A"}},
	{"a file with a blank in its name", "JOB A \"a b\" DIR \"c d\"\n", folder{"c d/a b": noop}, []string{"A <- "}},
	{"a splice in a splice", "SPLICE S s.dag\nJOB A x\nJOB Z x\nPARENT A CHILD S\nPARENT S CHILD Z\n", folder{
		"s.dag": "JOB B x\nJOB C x\nSPLICE T t.dag\nPARENT B CHILD T\n",
		"t.dag": "JOB D x\n",
	}, []string{"S+B <- A", "S+C <- A", "S+T+D <- S+B", "A <- ", "Z <- S+C S+T+D"}},
	{"a splice of a splice only", "SPLICE S s.dag\nJOB Z x\nPARENT S CHILD Z\n",
		folder{"s.dag": "SPLICE T t.dag\n", "t.dag": "JOB D x\n"}, []string{"S+T+D <- ", "Z <- S+T+D"}},
	{"splices in folders", "SPLICE S s.dag DIR sub\n",
		folder{"sub/s.dag": "SPLICE T t.dag DIR deep\n", "sub/deep/t.dag": "JOB D x\n"}, []string{"S+T+D <- "}},
	{"a sub-DAG, its FINAL node last", "JOB A x\nSUBDAG EXTERNAL S s.dag DIR sub\nJOB Z x\nPARENT A CHILD S\nPARENT S CHILD Z\n",
		folder{"sub/s.dag": "JOB B x\nJOB C x\nFINAL F x\n"},
		[]string{"A <- ", "S+B <- A", "S+C <- A", "S+F <- S+B S+C", "Z <- S+F"}},
	{"a splice between several nodes", "JOB A x\nJOB B x\nJOB C x\nJOB D x\nSPLICE S s.dag\nPARENT A CHILD S\nPARENT B CHILD S\n" +
		"PARENT S CHILD C\nPARENT S CHILD D\n", folder{"s.dag": "JOB E x\nJOB F x\nPARENT E CHILD F\n"},
		[]string{"A <- ", "B <- ", "C <- S+F", "D <- S+F", "S+E <- A B", "S+F <- S+E"}},
	{"a splice with edges of its own from outside", "SPLICE S s.dag\nSPLICE T t.dag\nCONNECT S T\nJOB A x\nPARENT A CHILD T\n", folder{
		"s.dag": "JOB B x\nPIN_OUT B 1\n", "t.dag": "JOB C x\nPIN_IN C 1\n",
	}, []string{"S+B <- ", "T+C <- S+B A", "A <- "}},
	{"a sub-DAG between several nodes", "JOB A x\nJOB B x\nSUBDAG EXTERNAL S s.dag\nJOB C x\nPARENT A CHILD S\nPARENT B CHILD S\nPARENT S CHILD C\n",
		folder{"s.dag": "JOB D x\n"}, []string{"A <- ", "B <- ", "S+D <- A B", "C <- S+D"}},
	{"FINAL", "FINAL F x\nJOB A x\nJOB B x\nJOB C x\nPARENT A CHILD B\n", nil,
		[]string{"F <- B C", "A <- ", "B <- A", "C <- "}},
	{"INCLUDE", "INCLUDE jobs\nPARENT A CHILD B\n", folder{"jobs": "JOB A x\nINCLUDE more\n", "more": "JOB B x\n"},
		[]string{"A <- ", "B <- A"}},
	{"pins", "SPLICE S s.dag\nSPLICE T t.dag\nCONNECT S T\n", folder{
		"s.dag": "JOB A x\nJOB B x\nPIN_OUT A 1\nPIN_OUT B 2\n",
		"t.dag": "PIN_IN C 1\nPIN_IN C 2\nPIN_IN D 2\nJOB C x\nJOB D x\n",
	}, []string{"S+A <- ", "S+B <- ", "T+C <- S+A S+B", "T+D <- S+B"}},
	{"several jobs of a node", "JOB A a\nJOB B x\nPARENT A CHILD B\n", folder{"a": "executable = /bin/true\nqueue 3\n"},
		[]string{"A.0 <- ", "A.1 <- ", "A.2 <- ", "B <- A.0 A.1 A.2"}},
	{"inline descriptions", "JOB A {\n executable = /bin/true\n}\nJOB C D\n" +
		"SUBMIT-DESCRIPTION D {\n executable = /bin/true\n}\n", nil, []string{"A <- ", "C <- "}},
	{"inline descriptions, newer", "JOB A {\n executable = /bin/true\n} DIR sub\nJOB B @=end\nqueue 2\n@end\n", nil,
		[]string{"A <- ", "B.0 <- ", "B.1 <- "}},
}

// withJobs adds the files that all structures name: a submit description in each folder.
func withJobs(files folder) folder {
	all := folder{"x": noop, "sub/x": noop, "sub/deep/x": noop}
	maps.Copy(all, files)
	return all
}

func TestReadStructure(t *testing.T) {
	t.Parallel()
	for _, c := range structures {
		wf, _, err := read(c.dag, withJobs(c.files))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(strings.Join(c.want, "\n")+"\n", shown(wf)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The control of a node becomes the control of its task.
func TestReadControl(t *testing.T) {
	t.Parallel()
	two, four := 2, 4
	for dag, want := range map[string]workflow.Task{
		"JOB A x\nJOB B x\nPRIORITY ALL_NODES 3\npriority A -5": {Control: &workflow.Control{Priority: -5}},
		"CATEGORY A c\nJOB A x":                                 {Control: &workflow.Control{Category: "c"}},
		"JOB A x\nRETRY A 2":                                    {Retries: &two},
		"JOB A x\nRetry A 4 unless-exit 9":                      {Retries: &four, Control: &workflow.Control{UnlessExit: 9}},
		"JOB A x DONE":                                          {Control: &workflow.Control{Done: true}},
		"DONE A\nJOB A x":                                       {Control: &workflow.Control{Done: true}},
		"FINAL A x":                                             {Control: &workflow.Control{Final: true}},
		"JOB A x\nABORT-DAG-ON A 7":                             {Control: &workflow.Control{Abort: &workflow.Abort{Exit: 7}}},
		"JOB A x\nABORT-DAG-ON A 7 RETURN 2": {
			Control: &workflow.Control{Abort: &workflow.Abort{Exit: 7, Return: &two}}},
		"JOB A x\nSCRIPT PRE A pre.sh \"$JOB\" 'a b'\nPRE_SKIP A 3": {
			Control: &workflow.Control{PreSkip: 3, Pre: &workflow.Script{Argv: []string{"pre.sh", `"$JOB"`, "'a", "b'"}}}},
		"JOB A x DIR sub\nscript defer 4 20 debug f all post A ../post $RETURN": {
			Control: &workflow.Control{Post: &workflow.Script{
				Argv: []string{"../post", "$RETURN"}, Dir: "sub", DeferStatus: 4, DeferAfter: 20 * time.Second,
			}}},
		"JOB A x\nSCRIPT HOLD A h": {Control: &workflow.Control{Hold: &workflow.Script{Argv: []string{"h"}}}},
	} {
		wf, _, err := read(dag, folder{"x": noop, "sub/x": noop})
		if err != nil {
			t.Errorf("%q: %v", dag, err)
			continue
		}
		want.ID, want.Name, want.Argv, want.CPUs = "A", "true", []string{"/bin/true"}, 1
		if diff := cmp.Diff(want, wf.Tasks[0]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", dag, diff)
		}
	}
}

func TestReadNoop(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "JOB A nothing NOOP\nSUBDAG EXTERNAL B nothing DIR nowhere NOOP\n", nil)
	for i, id := range []string{"A", "B"} {
		want := workflow.Task{ID: id, Name: "noop", Argv: []string{"true"}, Instant: true,
			Resources: corral.Resources{CPUs: 1}, Control: &workflow.Control{Noop: true}}
		if diff := cmp.Diff(want, wf.Tasks[i]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// The categories of a splice are local, except categories whose names begin with a plus sign; the outermost limit
// applies. All categories of a sub-DAG are local.
func TestReadCategories(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "SPLICE S s.dag\nSUBDAG EXTERNAL D s.dag\nMAXJOBS S+own 1\nMAXJOBS +all 2\nJOB A x\nCATEGORY A +all\n",
		folder{"x": noop, "s.dag": "JOB B x\nCATEGORY B own\nMAXJOBS own 8\nMAXJOBS +all 9\nJOB C x\nCATEGORY C +all\n"})
	want := map[string]int{"S+own": 1, "+all": 2, "D+own": 8, "D++all": 9}
	if diff := cmp.Diff(want, wf.Categories); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got []string
	for i := range wf.Tasks {
		got = append(got, wf.Tasks[i].ID+" "+wf.Tasks[i].Control.Category)
	}
	if want := []string{"S+B S+own", "S+C +all", "D+B D+own", "D+C D++all", "A +all"}; !slices.Equal(got, want) {
		t.Errorf("categories %q, want %q", got, want)
	}
}

// A sub-DAG, or a node with several jobs, is a group of tasks; settings that apply to each task are set for each task.
func TestReadSubworkflows(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "SUBDAG EXTERNAL S s.dag DONE\nPRIORITY S 10\nRETRY S 3\nSCRIPT PRE S pre\n", folder{
		"s.dag": "JOB A two\nCATEGORY A c\nRETRY A 1 UNLESS-EXIT 2\nPRIORITY A 5\nJOB B two\n",
		"two":   "executable = /bin/true\nqueue 2\n",
	})
	three := 3
	want := []workflow.Subworkflow{
		{Name: "S", End: 4, Retries: &three, Control: &workflow.Control{Done: true, Pre: &workflow.Script{Argv: []string{"pre"}}}},
		{Name: "S+A", End: 2, Job: true, Control: &workflow.Control{Category: "S+c"}},
		{Name: "S+B", First: 2, End: 4, Job: true},
	}
	if diff := cmp.Diff(want, wf.Subworkflows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if retries := wf.Tasks[1].Retries; retries == nil || *retries != 1 {
		t.Errorf("S+A.1 has retries %v", retries)
	}
	control := workflow.Control{Done: true, Priority: 15, UnlessExit: 2}
	if diff := cmp.Diff(&control, wf.Tasks[1].Control); diff != "" {
		t.Errorf("S+A.1 (-want +got):\n%s", diff)
	}
	control = workflow.Control{Done: true, Priority: 10}
	if diff := cmp.Diff(&control, wf.Tasks[2].Control); diff != "" {
		t.Errorf("S+B.0 (-want +got):\n%s", diff)
	}
}

func TestReadWarns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dag   string
		files folder
		want  []string
	}{
		{"JOB A gone\nJOB B gone\n", nil,
			[]string{`d/w.dag:1: submit description d/gone: no such file; its nodes have no command`}},
		{"JOB A x\nJOB B gone\nJOB C lost\nJOB D gone\n", folder{"x": noop},
			[]string{`d/w.dag:2: submit description d/gone: no such file; its nodes have no command (and 1 more like it)`}},
		{"SUBDAG EXTERNAL S gone.dag DIR sub\n", nil, []string{
			`d/w.dag:1: SUBDAG: d/sub/gone.dag: no such file; node "S" has no command`}},
		{"JOB A x\nDOT f\nDot g\nCONFIG f\nSET_JOB_ATTR a = b\n", folder{"x": noop}, []string{
			"d/w.dag:2: DOT is ignored: it concerns DAGMan itself", "d/w.dag:4: CONFIG is ignored: it concerns DAGMan itself",
			"d/w.dag:5: SET_JOB_ATTR is ignored: it concerns DAGMan itself"}},
		{"JOB A x\nDONE Z\n", folder{"x": noop}, []string{`d/w.dag:2: DONE: "Z" is not a node that can be done; it is ignored`}},
		{"JOB A x\n", folder{"x": "executable = a\nrequirements = Memory > 5\narguments = $$(Memory)\ngetenv = true\nqueue\n"},
			[]string{"d/x:5: getenv: the submitter's environment is not passed on",
				"d/x:5: requirements: ignored: workers are chosen by cpus, memory, disk and gpus",
				`d/x:5: arguments contains a $$(…), whose value depends on the machine: node "A" has no command`}},
		{"JOB A x\nJOB B x\n", folder{"x": "executable = /bin/a\noutput = log\nqueue"},
			[]string{`d/x:3: output: file log also belongs to another job; that of node "B" stays with its attempt`}},
		{"JOB A x\nJOB B y\n", folder{"x": "executable = /bin/a\nshould_transfer_files = YES\n", "y": "executable = /bin/a\n" +
			"should_transfer_files = YES\ntransfer_output_files = \"\"\n"},
			[]string{"d/x:2: transfer_output_files: it is missing; only the output and error of the job are kept"}},
		{"JOB A x\n", folder{"x": "universe = java\nqueue"}, []string{`d/x:2: universe java is not supported: node "A" has no command`}},
	} {
		_, warnings, err := read(c.dag, c.files)
		if err != nil {
			t.Errorf("%q: %v", c.dag, err)
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.dag, diff)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	files := folder{
		"x": noop, "empty": "# nothing\n", "self.dag": "SPLICE S self.dag\n", "sub.dag": "JOB A x\nSUBDAG EXTERNAL S sub.dag\n",
		"one.dag": "JOB A x\nINCLUDE two\n", "two": "INCLUDE one.dag\n", "folder": "/", "final.dag": "FINAL F x\n",
		"bad.dag": "JOB A x\n\nJOB A x\n", "queue": "executable = a\n\nqueue matching *.txt\n", "junk": "executable = a\n\nwhat\n",
		"quote": "executable = a\narguments = a \"b\nqueue\n", "if": "if true\nexecutable = a\n", "none": "executable = a\nqueue 0\n",
		"cycle.dag": "JOB A x\nJOB B x\nPARENT A CHILD B\nPARENT B CHILD A\n", "cpus": "executable = a\nrequest_cpus = -1\n",
		"loop": "executable = $(a)\na = $(b)\nb = $(a)\nqueue\n",
	}
	for dag, want := range map[string]string{
		"":                                     "d/w.dag: the workflow has no tasks",
		"JOBS A x":                             `d/w.dag:1: "JOBS" is not a DAGMan statement`,
		"JOB A x\nJOB \xff x":                  "d/w.dag:2: the line is not in UTF-8",
		"JOB":                                  "d/w.dag:1: JOB: the node's name is missing",
		"JOB A":                                "d/w.dag:1: JOB: the submit description is missing",
		"JOB A x\n\njob A x":                   `d/w.dag:3: JOB: there is another node "A" (d/w.dag:1)`,
		"JOB A x LATER":                        `d/w.dag:1: JOB: "LATER" is not DIR, NOOP or DONE`,
		"JOB A x DIR":                          "d/w.dag:1: JOB: the folder after DIR is missing",
		"JOB A+B x":                            `d/w.dag:1: JOB: the name "A+B" contains a plus sign, which separates the names of splices and nodes`,
		"JOB child x":                          `d/w.dag:1: JOB: "child" is a reserved word of DAGMan`,
		"JOB A {\nexecutable = a\n":            "d/w.dag:2: the submit description has no end, a line }",
		"JOB A folder":                         "d/w.dag:1: submit description d/folder: it is a directory, not a regular file",
		"JOB A x\nPARENT A CHILD B":            `d/w.dag:2: PARENT: there is no node "B"`,
		"JOB A x\nPARENT A":                    "d/w.dag:2: PARENT: a parent or a child is missing: PARENT NODE… CHILD NODE…",
		"JOB A x\nPARENT A CHILD A":            "d/w.dag:1: the tasks form a cycle: A -> A",
		"JOB A x\nFINAL F x\nPARENT A CHILD F": `d/w.dag:3: PARENT: FINAL node "F" has no parents and no children`,
		"FINAL F x\nFINAL G x":                 "d/w.dag:2: FINAL: there is another FINAL node (d/w.dag:1)",
		"FINAL F x\nRETRY F 2":                 `d/w.dag:2: RETRY: "F" is a FINAL node, which cannot have it`,
		"SPLICE S final.dag":                   "d/final.dag:1: FINAL: a splice cannot have a FINAL node",
		"SPLICE S gone":                        "d/w.dag:1: d/gone: no such file",
		"SPLICE S folder":                      "d/w.dag:1: d/folder: it is a directory, not a regular file",
		"SPLICE S self.dag":                    "d/self.dag:1: the files form a cycle: self.dag -> self.dag",
		"SPLICE S w.dag":                       "d/w.dag:1: the files form a cycle: w.dag -> w.dag",
		"SUBDAG EXTERNAL S sub.dag":            "d/sub.dag:2: the files form a cycle: sub.dag -> sub.dag",
		"SPLICE S one.dag":                     "d/two:1: the files form a cycle: one.dag -> two -> one.dag",
		"INCLUDE two":                          "d/one.dag:2: the files form a cycle: two -> one.dag -> two",
		"JOB A x\nSPLICE A one.dag":            `d/w.dag:2: SPLICE: there is another node "A" (d/w.dag:1)`,
		"SPLICE S bad.dag":                     `d/bad.dag:3: JOB: there is another node "A" (d/bad.dag:1)`,
		"SPLICE S cycle.dag\nJOB A x\nPARENT S CHILD A": "d/w.dag:3: PARENT: a parent or a child is missing: PARENT NODE… CHILD NODE…",
		"SPLICE S cycle.dag":                            "d/cycle.dag:1: the tasks form a cycle: S+A -> S+B -> S+A",
		"SPLICE S empty\nJOB A x\nPARENT A CHILD S":     `d/w.dag:3: PARENT: splice "S" has no nodes`,
		"SUBDAG EXTERNAL S empty":                       "d/w.dag:1: SUBDAG: d/empty has no nodes",
		"SUBDAG S empty":                                `d/w.dag:1: SUBDAG: "S" is not EXTERNAL`,
		"PROVISIONER P x":                               "d/w.dag:1: PROVISIONER nodes are not supported: remove the line, and run that program beside the workflow",
		"SERVICE P x":                                   "d/w.dag:1: SERVICE nodes are not supported: remove the line, and run that program beside the workflow",
		"JOB A x\nREJECT":                               "d/w.dag:2: the file must not be run, according to REJECT",
		"JOB A x\nRETRY A":                              "d/w.dag:2: RETRY: the number of retries is missing",
		"JOB A x\nRETRY A -1":                           `d/w.dag:2: RETRY: the number of retries is "-1", want 0 to 2147483647`,
		"JOB A x\nRETRY A 2 UNTIL 3":                    `d/w.dag:2: RETRY: "UNTIL" is not UNLESS-EXIT`,
		"JOB A x\nRETRY B 2":                            `d/w.dag:2: RETRY: there is no node "B"`,
		"JOB A x\nPRIORITY A high":                      `d/w.dag:2: PRIORITY: the priority is "high", want -2147483647 to 2147483647`,
		"JOB A x\nPRIORITY A 1 2":                       `d/w.dag:2: PRIORITY: unexpected "2"`,
		"JOB A x\nVARS A":                               "d/w.dag:2: VARS: a macro is missing",
		"JOB A x\nVARS A b":                             `d/w.dag:2: VARS: "b" is not NAME="VALUE"`,
		"JOB A x\nVARS A b=\"c":                         "d/w.dag:2: VARS: the value of a macro has no closing quote",
		"JOB A x\nVARS A queued=\"c\"":                  `d/w.dag:2: VARS: "queued" is not a valid macro name`,
		"JOB A x\nSCRIPT A pre":                         `d/w.dag:2: SCRIPT: "A" is not PRE, POST or HOLD`,
		"JOB A x\nSCRIPT PRE A":                         "d/w.dag:2: SCRIPT: the script's name is missing",
		"JOB A x\nSCRIPT DEFER 0 1 PRE A p":             `d/w.dag:2: SCRIPT: the exit status of DEFER is "0", want 1 to 2147483647`,
		"JOB A x\nABORT-DAG-ON A 1 RETURN 256":          `d/w.dag:2: ABORT-DAG-ON: the exit status of the DAG is "256", want 0 to 255`,
		"JOB A x\nMAXJOBS c":                            "d/w.dag:2: MAXJOBS: the limit is missing",
		"CONNECT A B":                                   `d/w.dag:1: CONNECT: there is no splice "A"`,
		"JOB A y.condor.sub":                            "d/w.dag:1: JOB: y.condor.sub was made from a DAG: use SUBDAG EXTERNAL to run it",
		"JOB A queue": "d/queue:3: queue … matching is not supported, because it depends on the contents of the folder: " +
			"name the files with queue … in or queue … from",
		"JOB A junk":  `d/junk:3: "what" is not a command of a submit description: use NAME = VALUE or queue`,
		"JOB A quote": `d/quote:3: node "A": arguments: a double quote in the middle has no backslash`,
		"JOB A if":    "d/if:2: an if has no endif",
		"JOB A none":  `d/w.dag:1: node "A": its submit description queues no jobs`,
		"JOB A cpus":  `d/cpus:2: node "A": request_cpus is -1, want 1 to 65536`,
		"JOB A loop":  "d/loop:4: executable: a macro refers to itself, or to others more than 50 deep",
	} {
		wf, _, err := read(dag, files)
		if err == nil || wf != nil {
			t.Errorf("%q: read %v, want an error", dag, wf)
			continue
		}
		if err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", dag, err, want)
		}
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("%q: %v is not Invalid", dag, err)
		}
	}
}

// The expansion of a few lines is limited.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	doubling := folder{}
	doubling["s40"], doubling["i40"] = "JOB A x NOOP\n", ""
	for i := range 40 {
		doubling[fmt.Sprintf("s%d", i)] = fmt.Sprintf("SPLICE A s%d\nSPLICE B s%[1]d\n", i+1)
		doubling[fmt.Sprintf("i%d", i)] = fmt.Sprintf("INCLUDE i%d\nINCLUDE i%[1]d\n", i+1)
	}
	deep := func(name string) (io.ReadCloser, error) { // a folder that contains itself
		return io.NopCloser(strings.NewReader("SPLICE S w.dag DIR sub\n")), nil
	}
	wide := "JOB A x\nQ" + strings.Repeat(" A", 100)
	laughs := "executable = $(m40)\nm0 = ha\n"
	for i := range 40 {
		laughs += fmt.Sprintf("m%d = $(m%d)$(m%[2]d)\n", i+1, i)
	}
	many := "JOB N0 x\n"
	var parents strings.Builder
	for i := range 5000 {
		many += fmt.Sprintf("JOB M%d x NOOP\n", i)
		fmt.Fprintf(&parents, " M%d", i)
	}
	for _, c := range []struct {
		name, dag string
		opts      workflow.Options
		want      string
	}{
		{"files within files", "SPLICE S w.dag DIR sub\n", workflow.Options{Open: deep}, "more than 64 files are nested"},
		{"doubled splices", "SPLICE S s0\n", workflow.Options{Open: doubling.open, MaxBytes: 1 << 20}, "w.dag: the workflow is longer than 1 MiB"},
		{"doubled includes", "INCLUDE i0\n", workflow.Options{Open: doubling.open},
			"more than 200000 nodes and files come from files that are read repeatedly"},
		{"long lines", wide, workflow.Options{MaxValue: 100}, "w.dag:2: a line is longer than 100 bytes"},
		{"joined lines", "JOB A x\nVARS A \\\n" + strings.Repeat("b \\\n", 100), workflow.Options{MaxValue: 100},
			"w.dag:49: a line is longer than 100 bytes"},
		{"tasks", many, workflow.Options{MaxTasks: 100}, "w.dag:101: the workflow has more than 100 tasks"},
		{"jobs of a node", "JOB A x\n", workflow.Options{Open: folder{"x": "queue 1000000\n"}.open, MaxTasks: 100},
			"x:1: the workflow has more than 100 tasks"},
		{"jobs of several queues", "JOB A x\n", workflow.Options{Open: folder{"x": "queue 60\nqueue 2 in (" + strings.Repeat("a ", 21) + ")\n"}.open,
			MaxTasks: 100}, "x:2: the workflow has more than 100 tasks"},
		{"jobs of several nodes", "JOB A x\nJOB B x\n", workflow.Options{Open: folder{"x": "queue 100\n"}.open, MaxTasks: 100},
			"x:1: the workflow has more than 100 tasks"},
		{"nodes of a job each", "JOB A x\nJOB B x\n", workflow.Options{Open: folder{"x": "queue\n"}.open, MaxTasks: 1},
			"w.dag:2: the workflow has more than 1 tasks"},
		{"macros of macros", "JOB A x\n", workflow.Options{Open: folder{"x": laughs + "queue\n"}.open},
			"x:43: executable: a value takes more than 50000 expansions of macros"},
		{"what is said of all nodes", many + strings.Repeat("VARS ALL_NODES a=b\n", 9), workflow.Options{MaxTasks: 5001},
			"w.dag:5010: VARS: ALL_NODES makes more than 40008 settings of single nodes"},
		{"long names of splices", "SPLICE " + strings.Repeat("S", 5000) + " s\n", workflow.Options{Open: folder{"s": "JOB A x NOOP\n"}.open},
			"w.dag:1: SPLICE: the name or the folder of the splice has more than 4096 bytes"},
		{"long folders of splices", "SPLICE S s DIR " + strings.Repeat("d/", 3000), workflow.Options{},
			"w.dag:1: SPLICE: the name or the folder of the splice has more than 4096 bytes"},
		{"long names of splices in splices", "SPLICE " + strings.Repeat("S", 3000) + " s\n",
			workflow.Options{Open: folder{"s": "\nSPLICE " + strings.Repeat("I", 3000) + " e\n", "e": ""}.open},
			"s:2: SPLICE: the name or the folder of the splice has more than 4096 bytes"},
		{"long folders", "JOB A x DIR " + strings.Repeat("d/", 3000), workflow.Options{},
			"w.dag:1: JOB: the name or the folder of the node has more than 4096 bytes"},
		{"a long description of many nodes", strings.ReplaceAll(many, "NOOP", ""), workflow.Options{MaxBytes: 1 << 20,
			Open: folder{"x": "arguments = " + strings.Repeat("a ", 2000)}.open},
			`x:1: arguments: the values of all jobs together exceed the size limit of a workflow`},
		{"many files in a long folder", "JOB A x DIR " + strings.Repeat("d", 4000), workflow.Options{MaxBytes: 1 << 20,
			Open: folder{strings.Repeat("d", 4000) + "/x": "transfer_input_files = " + strings.Repeat("a,", 2000)}.open},
			`/x:1: node "A": the values of all jobs together exceed the size limit of a workflow`},
		{"many statements of many nodes", strings.ReplaceAll(many, "NOOP", ""), workflow.Options{MaxBytes: 1 << 20,
			Open: folder{"x": strings.Repeat("a = b\n", 5000) + "queue\n"}.open},
			"x:1677: the values of all jobs together exceed the size limit of a workflow"},
		{"edges", many + "PARENT" + parents.String() + " CHILD N0\nPARENT" + parents.String() + " CHILD" + parents.String() + "\n",
			workflow.Options{}, "w.dag:5003: the DAG has more than 16777216 edges"},
	} {
		_, _, err := dagman.Read(t.Context(), strings.NewReader(c.dag), "w.dag", c.opts)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	_, _, err := dagman.Read(ctx, strings.NewReader("JOB A x\n"), "w.dag", workflow.Options{})
	if !errors.Is(err, stop) || corral.KindOf(err) == corral.Invalid {
		t.Errorf("Read = %v, want the cause", err)
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"# a DAG\n\n  job A a.sub\n": true, "PARENT A CHILD B": true, "Subdag External A b.dag": true, "INCLUDE x": true,
		"": false, "{": false, "# nothing": false, "JOBS A B": false, "<adag>": false, "done": false, "CC=gcc\n": false,
	} {
		if got := dagman.Sniff([]byte(text)); got != want {
			t.Errorf("Sniff(%q) = %v", text, got)
		}
	}
}

// FuzzRead searches for texts that make Read panic, take a long time, or return an invalid workflow. The DAG and two
// files beside it are parts of one text.
func FuzzRead(f *testing.F) {
	f.Add("JOB A x\nSPLICE S y\nPARENT A CHILD S\nVARS A b=\"c\"\x00arguments = $(b:d) $F(b)\nqueue 2 in (a b)\n\x00JOB B x NOOP\n")
	f.Add("FINAL F x\nJOB A {\nexecutable = a\n}\nCATEGORY A c\nMAXJOBS c 2\n\x00if defined a\nelse\nendif\nqueue a,b from (\n1 2\n)\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		parts := strings.SplitN(text+"\x00\x00", "\x00", 3)
		opts := workflow.Options{MaxBytes: 1 << 20, MaxTasks: 1000, Open: folder{"x": parts[1], "y": parts[2]}.open}
		wf, _, err := dagman.Read(t.Context(), bytes.NewReader([]byte(parts[0])), "w.dag", opts)
		if err != nil {
			if corral.KindOf(err) != corral.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		if wf.Graph.Len() != len(wf.Tasks) || len(wf.Tasks) == 0 {
			t.Fatalf("%d tasks, %d in the graph", len(wf.Tasks), wf.Graph.Len())
		}
		_, _ = wf.Runnable(), wf.Schedulable()
	})
}
