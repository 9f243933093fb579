package dagman_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// A job is the result of reading a submit description, on which HTCondor and Read must agree.
type job struct {
	Args, Env []string // the environment as NAME=VALUE, sorted
	In        string   // "" for /dev/null, as in the next two fields
	Out, Err  string
	CPUs      int
	MemoryMiB int
	DiskMiB   int
}

// descriptions holds submit descriptions and their jobs; they are read with the macros JOB=N and given="it's". The test
// with a real condor_submit also uses them. An executable is added to each description.
var descriptions = map[string]struct {
	text string
	want []job
}{
	"nothing":           {"queue", []job{{CPUs: 1}}},
	"without queue":     {"arguments = a", []job{{Args: []string{"a"}, CPUs: 1}}},
	"old arguments":     {`arguments = a\"b\" 'c d' e\f ''`, []job{{Args: []string{`a"b"`, "'c", "d'", `e\f`, "''"}, CPUs: 1}}},
	"new arguments":     {`arguments = "a 'b c' d''e 'it''s' ""q"" '' x\y"`, []job{{Args: []string{"a", "b c", "de", "it's", `"q"`, "", `x\y`}, CPUs: 1}}},
	"quotes in a word":  {`arguments = "a'b c'd"`, []job{{Args: []string{"ab cd"}, CPUs: 1}}},
	"old environment":   {`environment = A=1;B=2 3;C=`, []job{{Env: []string{"A=1", "B=2 3", "C="}, CPUs: 1}}},
	"new environment":   {`environment = "A=1 B='x y' C='it''s' D=""q"" E="`, []job{{Env: []string{"A=1", "B=x y", "C=it's", `D="q"`, "E="}, CPUs: 1}}},
	"streams":           {"input = in\noutput = out/o\nerror = /dev/null", []job{{In: "in", Out: "out/o", CPUs: 1}}},
	"initialdir":        {"initialdir = out\ninput = in\noutput = o", []job{{In: "out/in", Out: "out/o", CPUs: 1}}},
	"macros":            {"a = 1\nb = $(a)$(c)\nc = 3\narguments = $(b) $(d) $(d:x$(a)) $(A) $(DOLLAR)(a) $(JOB) $(given) $$ $x", []job{{Args: []string{"13", "x1", "1", "$(a)", "N", "it's", "$$", "$x"}, CPUs: 1}}},
	"a macro of itself": {"a = 1\na = $(a)2\na = $(a)3\narguments = $(a)", []job{{Args: []string{"123"}, CPUs: 1}}},
	"the last counts":   {"arguments = a\narguments = b\nARGUMENTS = c", []job{{Args: []string{"c"}, CPUs: 1}}},
	"file functions": {"f = a/b.d/c.tar.gz\narguments = $Fp(f) $Fn(f) $Fx(f) $Fnx(f) $Fd(f) $Fbp(f) $Fbx(f) $Fpn(f) $F(f) $BASENAME(f) $DIRNAME(f)",
		[]job{{Args: []string{"a/b.d/", "c.tar", ".gz", "c.tar.gz", "b.d/", "a/b.d", "gz", "a/b.d/c.tar", "a/b.d/c.tar.gz", "c.tar.gz", "a/b.d/"}, CPUs: 1}}},
	"INT":        {"n = 7.9\narguments = $INT(n)", []job{{Args: []string{"7"}, CPUs: 1}}},
	"sizes":      {"request_memory = 1500\nrequest_disk = 2000\nrequest_cpus = 3", []job{{CPUs: 3, MemoryMiB: 1500, DiskMiB: 2}}},
	"units":      {"request_memory = 2 GB\nrequest_disk = 3M", []job{{CPUs: 1, MemoryMiB: 2048, DiskMiB: 3}}},
	"more units": {"request_memory = 1.5g\nrequest_disk = 1T", []job{{CPUs: 1, MemoryMiB: 1536, DiskMiB: 1 << 20}}},
	"queue several": {"arguments = $(Process) $(ProcId) $(Step)\nqueue 2", []job{
		{Args: []string{"0", "0", "0"}, CPUs: 1}, {Args: []string{"1", "1", "1"}, CPUs: 1}}},
	"queue twice": {"arguments = a $(Process)\nqueue\narguments = b $(Process)\nqueue", []job{
		{Args: []string{"a", "0"}, CPUs: 1}, {Args: []string{"b", "1"}, CPUs: 1}}},
	"queue in":         {"arguments = $(x)\nqueue x in (a, b)\narguments = b$(Item)\nqueue in c", []job{{Args: []string{"a"}, CPUs: 1}, {Args: []string{"b"}, CPUs: 1}, {Args: []string{"bc"}, CPUs: 1}}},
	"queue in, lines":  {"arguments = $(x)\nqueue 1 x in (\n a\n b,c\n)", []job{{Args: []string{"a"}, CPUs: 1}, {Args: []string{"b"}, CPUs: 1}, {Args: []string{"c"}, CPUs: 1}}},
	"queue from":       {"arguments = $(x)-$(y) $(Row) $(Step)\nqueue 2 x, y from (\n a b c\n# no\n d, e\n)", []job{{Args: []string{"a-b", "c", "0", "0"}, CPUs: 1}, {Args: []string{"a-b", "c", "0", "1"}, CPUs: 1}, {Args: []string{"d-e", "1", "0"}, CPUs: 1}, {Args: []string{"d-e", "1", "1"}, CPUs: 1}}},
	"queue from file":  {"arguments = $(x)+$(y)\nqueue x y from rows", []job{{Args: []string{"1+2"}, CPUs: 1}, {Args: []string{"3+4"}, CPUs: 1}}},
	"queue of a macro": {"n = 2\narguments = a\nqueue $(n)", []job{{Args: []string{"a"}, CPUs: 1}, {Args: []string{"a"}, CPUs: 1}}},
	"if": {"if defined given\narguments = a\nelse\narguments = b\nendif\nif false\noutput = no\nelif 1\noutput = yes\nelif true\noutput = late\nendif\n" +
		"if ! defined nothing\nerror = e\nendif\nqueue", []job{{Args: []string{"a"}, Out: "yes", Err: "e", CPUs: 1}}},
	"if in if":                {"if false\nif true\narguments = a\nelse\narguments = b\nendif\nelse\narguments = c\nendif", []job{{Args: []string{"c"}, CPUs: 1}}},
	"if version":              {"if version >= 8.1.6\narguments = a\nendif\nif version < 8.0\narguments = b\nendif", []job{{Args: []string{"a"}, CPUs: 1}}},
	"include":                 {"include : more\nqueue", []job{{Args: []string{"included"}, CPUs: 1}}},
	"a value of lines":        {"x @=end\n a\n b\n@end\narguments = a", []job{{Args: []string{"a"}, CPUs: 1}}},
	"joined lines, a comment": {"arguments = a \\\n# no \\\n b\n# no \\\nqueue", []job{{Args: []string{"a", "b"}, CPUs: 1}}},
	"joined lines":            {"arguments = a \\\n  b\\\n  c\nqueue", []job{{Args: []string{"a", "bc"}, CPUs: 1}}},
}

// beside holds the files that the descriptions name.
var beside = folder{"rows": "1 2\n3,4\n", "more": "arguments = included\n", "in": "", "out/in": ""}

// whole returns a description with its executable.
func whole(text string) string { return "executable = /bin/echo\n" + text + "\n" }

func TestReadSubmitDescriptions(t *testing.T) {
	t.Parallel()
	for name, c := range descriptions {
		files := maps.Clone(beside)
		files["x"] = whole(c.text)
		wf, warnings, err := read("JOB N x\nVARS N given=\"it's\"\n", files)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", name, err, warnings)
			continue
		}
		if diff := cmp.Diff(c.want, jobs(wf)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// jobs returns the tasks of a workflow as jobs.
func jobs(wf *workflow.Workflow) []job {
	var all []job
	for i := range wf.Tasks {
		t := &wf.Tasks[i]
		j := job{In: t.Stdin, Out: t.Stdout, Err: t.Stderr, CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, DiskMiB: t.DiskMiB}
		j.Args = slices.Clip(append(j.Args, t.Argv[1:]...))
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			j.Env = append(j.Env, name+"="+t.Env[name])
		}
		all = append(all, j)
	}
	return all
}

// Files are identified by their paths relative to the folder of the .dag, from whichever folder a job is submitted;
// where the job runs, files have the same names as with HTCondor.
func TestReadFiles(t *testing.T) {
	t.Parallel()
	zero := workflow.Task{ID: "A", Name: "p", Argv: []string{"./p"}, Inputs: []string{"p"}, Resources: corral.Resources{CPUs: 1}}
	for _, c := range []struct {
		dag, text string
		want      func(*workflow.Task)
	}{
		{"JOB A x", "", func(*workflow.Task) {}},
		{"JOB A x DIR sub", "input = i\noutput = o\nerror = o\ntransfer_input_files = ../f, g", func(t *workflow.Task) {
			t.Argv[0], t.Inputs = "./sub/p", []string{"sub/p", "sub/i", "f", "sub/g"}
			t.Streams = workflow.Streams{Stdin: "sub/i", Stdout: "sub/o", Stderr: "sub/o"}
			t.Outputs, t.Names = []string{"sub/o"}, map[string]string{"sub/g": "g"}
		}},
		{"JOB A x", "transfer_executable = false\ntransfer_input_files = d/f\ntransfer_output_files = e/g", func(t *workflow.Task) {
			t.Argv[0], t.Inputs, t.Outputs = "p", []string{"d/f"}, []string{"g"}
			t.Names = map[string]string{"d/f": "f", "g": "e/g"}
		}},
		{"JOB A x", "preserve_relative_paths = true\ntransfer_input_files = d/f\ntransfer_output_files = e/g", func(t *workflow.Task) {
			t.Inputs, t.Outputs = []string{"p", "d/f"}, []string{"e/g"}
		}},
		{"JOB A x", "initialdir = d\ntransfer_output_files = g,h\ntransfer_output_remaps = \"h = ../k\"", func(t *workflow.Task) {
			t.Outputs, t.Names = []string{"d/g", "k"}, map[string]string{"d/g": "g", "k": "h"}
		}},
		{"JOB A x\nRETRY A 2", "max_retries = 5\npriority = 3\nallowed_execute_duration = 60", func(t *workflow.Task) {
			two := 2
			t.Retries, t.Control, t.Timeout = &two, &workflow.Control{Priority: 3}, time.Minute
		}},
		{"JOB A x\nVARS A o=\"1\"\nVARS A APPEND q=\"2\"\nVARS A o=\"3\"", "o = $(o)a\nq = b\narguments = $(o)$(q)", func(t *workflow.Task) {
			t.Argv = append(t.Argv, "3a2")
		}},
		{"JOB A x", "noop_job = true", func(t *workflow.Task) {
			t.Name, t.Argv, t.Inputs, t.Instant = "noop", []string{"true"}, nil, true
			t.Control = &workflow.Control{Noop: true}
		}},
	} {
		description := "executable = p\n" + c.text + "\nqueue\n"
		wf := mustRead(t, c.dag, folder{"x": description, "sub/x": description})
		want := zero
		want.Argv, want.Inputs = slices.Clone(zero.Argv), slices.Clone(zero.Inputs)
		c.want(&want)
		if diff := cmp.Diff(want, wf.Tasks[0]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

// A description is read once for all nodes that use it.
func TestReadManyNodes(t *testing.T) {
	t.Parallel()
	var dag strings.Builder
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&dag, "JOB N%d x\nVARS N%[1]d i=\"%[1]d\"\n", i)
		if i > 0 {
			fmt.Fprintf(&dag, "PARENT N%d CHILD N%d\n", i-1, i)
		}
	}
	wf := mustRead(t, dag.String(), folder{"x": "executable = /bin/echo\narguments = $(i)\nqueue\n"})
	if len(wf.Tasks) != n || wf.Graph.Edges() != n-1 || wf.Tasks[n-1].Argv[1] != fmt.Sprint(n-1) {
		t.Errorf("%d tasks, %d edges, the last one %q", len(wf.Tasks), wf.Graph.Edges(), wf.Tasks[n-1].Argv)
	}
}
