package dagman_test

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

const nested = `JOB A a.sub
JOB B pair.sub
SUBDAG EXTERNAL S inner.dag
SPLICE P inner.dag
FINAL F a.sub
PARENT A CHILD B S
`

// readNested reads a .dag with a node of two jobs, a sub-DAG inside a sub-DAG, a splice and a FINAL node.
func readNested(t testing.TB) *workflow.Workflow {
	t.Helper()
	files := map[string]string{
		"a.sub":         "executable = /bin/true\nqueue\n",
		"pair.sub":      "executable = /bin/true\nqueue 2\n",
		"inner.dag":     "JOB X a.sub\nSUBDAG EXTERNAL T innermost.dag\n",
		"innermost.dag": "JOB Y a.sub\nJOB Z a.sub\n",
	}
	wf, _, err := dagman.Read(t.Context(), strings.NewReader(nested), "top.dag", workflow.Options{
		Open: func(name string) (io.ReadCloser, error) {
			if text, ok := files[name]; ok {
				return io.NopCloser(strings.NewReader(text)), nil
			}
			return nil, fs.ErrNotExist
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return wf
}

func ids(wf *workflow.Workflow, is func(i int) bool) (names []string) {
	for i := range wf.Tasks {
		if is(i) {
			names = append(names, wf.Tasks[i].ID)
		}
	}
	return names
}

func TestRescueOf(t *testing.T) {
	t.Parallel()
	wf := readNested(t)
	const all = "A B.0 B.1 S+X S+T+Y S+T+Z P+X P+T+Y P+T+Z F"
	if got := strings.Join(ids(wf, func(int) bool { return true }), " "); got != all {
		t.Fatalf("tasks %s, want %s", got, all)
	}
	for name, tc := range map[string]struct {
		done, failed string
		want         dagman.Rescue
	}{
		"nothing":         {"", "", dagman.Rescue{Nodes: 6}},
		"a node":          {"A", "B.1", dagman.Rescue{Nodes: 6, Done: []string{"A"}, Failed: []string{"B"}}},
		"one of two jobs": {"A B.0", "B.1", dagman.Rescue{Nodes: 6, Done: []string{"A"}, Failed: []string{"B"}}},
		"both jobs":       {"A B.0 B.1", "", dagman.Rescue{Nodes: 6, Done: []string{"A", "B"}}},
		"a sub-DAG":       {"A S+X S+T+Y S+T+Z", "", dagman.Rescue{Nodes: 6, Done: []string{"A", "S"}}},
		"parts of sub-DAGs": {"A S+X S+T+Y P+X", "S+T+Z", dagman.Rescue{Nodes: 6, Done: []string{"A", "P+X"},
			Failed: []string{"S"}, Inner: []string{"S+X", "S+T+Y"}}},
		"an inner sub-DAG": {"S+T+Y S+T+Z", "", dagman.Rescue{Nodes: 6, Inner: []string{"S+T"}}},
		"the final node":   {all, "", dagman.Rescue{Nodes: 6, Done: []string{"A", "B", "S", "P+X", "P+T"}}},
	} {
		in := func(list string) func(int) bool {
			return func(i int) bool { return slices.Contains(strings.Fields(list), wf.Tasks[i].ID) }
		}
		if diff := cmp.Diff(tc.want, dagman.RescueOf(wf, in(tc.done), in(tc.failed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRescueComesBack: after a set of done tasks has been written and read, the same tasks are marked, except FINAL
// nodes, and jobs of nodes whose other jobs are not done.
func TestRescueComesBack(outer *testing.T) {
	outer.Parallel()
	rapid.Check(outer, func(t *rapid.T) {
		wf := readNested(outer)
		done := make([]bool, len(wf.Tasks))
		for i := range done {
			done[i] = rapid.Bool().Draw(t, "done")
		}
		r := dagman.RescueOf(wf, func(i int) bool { return done[i] }, func(int) bool { return false })
		r.DAG, r.CreatedAt, r.Data = "top.dag", time.Unix(0, 0).UTC(), "/data"
		var text strings.Builder
		if err := r.Write(&text); err != nil {
			t.Fatal(err)
		}
		again, err := dagman.ReadRescue(strings.NewReader(text.String()), "r")
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		if again.Data != "/data" {
			t.Errorf("data %q", again.Data)
		}
		if unknown := again.Mark(wf); len(unknown) > 0 {
			t.Errorf("unknown nodes %q in\n%s", unknown, text.String())
		}
		both := done[1] && done[2]
		want := ids(wf, func(i int) bool {
			id := wf.Tasks[i].ID
			return done[i] && id != "F" && (both || !strings.HasPrefix(id, "B."))
		})
		marked := wf.DoneBefore()
		if diff := cmp.Diff(want, ids(wf, func(i int) bool { return marked[i] })); diff != "" {
			t.Errorf("marked (-want +got):\n%s\n%s", diff, text.String())
		}
	})
}

// TestRescueIsDAGMans: the text equals that of testdata, which a real DAGMan reads in package condor's tests.
func TestRescueIsDAGMans(t *testing.T) {
	t.Parallel()
	r := dagman.Rescue{
		DAG: "two.dag", CreatedAt: time.Date(2026, 11, 23, 16, 0, 9, 0, time.UTC), Nodes: 2, Done: []string{"a"},
		Failed: []string{"b"}, Inner: []string{"sub+x"}, Data: "/runs/two/data",
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/two.dag.rescue001")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("-testdata +written:\n%s", diff)
	}
}

// TestRescueOfDAGMan: the text was written by the DAGMan of HTCondor 23.9 for a DAG with a retry and a splice.
func TestRescueOfDAGMan(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/three.dag.rescue001")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := dagman.ReadRescue(f, f.Name())
	if diff := cmp.Diff(dagman.Rescue{Done: []string{"a", "s+y"}}, r); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestReadRescue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"a node's name is missing": {"DONE\n", "r:1: DONE needs the name of one node"},
		"two names":                {"\nDONE a b\n", "r:2: DONE needs the name of one node"},
		"a whole DAG":              {"# Rescue DAG file\nJOB a a.sub DONE\n", "r:2: this rescue file holds a whole DAG"},
		"something else":           {"PARENT a CHILD b\n", `r:1: "PARENT" is not a statement of a rescue file`},
		"a relative path":          {"# Corral data: x\n", `r:1: "x" must be an absolute path`},
		"a long line":              {"DONE " + strings.Repeat("x", 1<<20), "r: a line is too long"},
	} {
		_, err := dagman.ReadRescue(strings.NewReader(tc.text), "r")
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	r, err := dagman.ReadRescue(strings.NewReader("# DONE x\r\n done A+B \n\nRETRY c 3\n"), "r")
	if diff := cmp.Diff(dagman.Rescue{Done: []string{"A+B"}}, r); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	wf := readNested(t)
	if unknown := (dagman.Rescue{Done: []string{"A", "nobody", "F"}}).Mark(wf); !slices.Equal(unknown, []string{"nobody", "F"}) {
		t.Errorf("unknown: %q", unknown)
	}
}

func TestRescueNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		dagman.RescueName("x.dag", 7): 7, "x.dag.rescue999": 999, "x.dag.rescue000": 0, "x.dag.rescue1": 0,
		"x.dag.rescue0001": 0, "x.dag.rescue-01": 0, "y.dag.rescue001": 0, "x.dag.rescue001.old": 0, "x.dag": 0,
	} {
		if got := dagman.RescueNumber("x.dag", name); got != want {
			t.Errorf("RescueNumber(%q) = %d, want %d", name, got, want)
		}
	}
}
