//go:build sites

package dagman_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// tools provides the tools of a real HTCondor without its daemons, with a folder of DAGs to which they may write.
type tools struct{ release, folder string }

// newTools copies DAGs into a folder of the tools' user, which is not root.
func newTools(t *testing.T, from string) tools {
	t.Helper()
	release, err := programs.HTCondor()
	if err != nil {
		t.Fatal(err)
	}
	c := tools{release: release}
	if c.folder, err = os.MkdirTemp("/var/tmp", "dagman-test-"); err != nil { // the tools' user cannot access t.TempDir
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(c.folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(c.folder, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("RELEASE_DIR = %s\nLOCAL_DIR = %s\nLOG = %[2]s\nDAGMAN_USE_JOIN_NODES = False\n", c.release, c.folder)
	c.write(t, "condor_config", config)
	c.give(t)
	return c
}

// write writes a file that the tools' user owns.
func (c tools) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(c.folder, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	if err == nil && os.Getuid() == 0 {
		err = os.Lchown(path, nobody, nobody)
	}
	if err != nil {
		t.Error(err)
	}
}

// give makes the tools' user the owner of the whole folder.
func (c tools) give(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	err := filepath.WalkDir(c.folder, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
}

const nobody = 65534

// run runs a tool, and returns its output.
func (c tools) run(t *testing.T, dir, tool string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.release, "bin", tool), args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"CONDOR_CONFIG=" + filepath.Join(c.folder, "condor_config"),
		"_CONDOR_DAGMAN_LOG=" + filepath.Join(dir, logOf(args)), "PATH=" + os.Getenv("PATH"),
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, _ := cmd.CombinedOutput() // the exit status reports how the jobs ended, but no jobs ran
	return string(out)
}

func (c tools) version(t *testing.T) string {
	t.Helper()
	version, _, _ := strings.Cut(c.run(t, c.folder, "condor_version"), "\n")
	return version
}

// logOf returns the path to which condor_dagman writes its log, which is beside the DAG named in the arguments.
func logOf(args []string) string {
	if i := slices.Index(args, "-Dag"); i >= 0 {
		return args[i+1] + ".out"
	}
	return "dagman.out"
}

// A graph is DAGMan's view of a file; taken is false if DAGMan refuses the file.
type graph struct {
	nodes, edges []string
	taken        bool
}

// graph reads a DAG with the real DAGMan.
func (c tools) graph(t *testing.T, name, version string) graph {
	t.Helper()
	dir, base := filepath.Split(filepath.Join(c.folder, name))
	text, err := os.ReadFile(dir + base)
	if err != nil {
		t.Error(err)
		return graph{}
	}
	drawn := base + ".drawn"
	c.write(t, filepath.Join(filepath.Dir(name), drawn), string(text)+"\nDOT "+drawn+".dot DONT-UPDATE OVERWRITE\n")
	c.run(t, dir, "condor_dagman", "-p", "0", "-f", "-l", ".", "-Lockfile", drawn+".lock", "-AutoRescue", "0",
		"-DoRescueFrom", "0", "-Dag", drawn, "-CsdVersion", version, "-Debug", "3", "-DryRun")
	said, err := os.ReadFile(dir + drawn + ".out")
	if err != nil || !bytes.Contains(said, []byte("Parsing 1 dagfiles")) {
		t.Errorf("%s: condor_dagman did not begin: %v\n%s", name, err, said)
		return graph{}
	}
	picture, err := os.ReadFile(dir + drawn + ".dot")
	if err != nil || bytes.Contains(said, []byte("a cycle exists")) {
		return graph{}
	}
	g := graph{taken: true}
	for _, line := range strings.Split(string(picture), "\n") {
		line = strings.TrimSpace(line)
		if from, to, edge := strings.Cut(line, `" -> "`); edge {
			g.edges = append(g.edges, strings.TrimPrefix(from, `"`)+" -> "+strings.TrimSuffix(to, `";`))
		} else if node, _, ok := strings.Cut(line, `" [`); ok {
			g.nodes = append(g.nodes, strings.TrimPrefix(node, `"`))
		}
	}
	g.nodes, g.edges = sorted(g.nodes), sorted(g.edges)
	return g
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// asDAGMan returns a workflow's graph in DAGMan's form: a sub-DAG is a single node, and no edge leads to a FINAL node.
func asDAGMan(wf *workflow.Workflow) graph {
	names := make([]string, len(wf.Tasks))
	for i := range wf.Tasks {
		names[i] = wf.Tasks[i].ID
	}
	for _, s := range slices.Backward(wf.Subworkflows) { // outer ones last
		for i := s.First; i < s.End; i++ {
			names[i] = s.Name
		}
	}
	g := graph{taken: true}
	for i := range wf.Tasks {
		g.nodes = append(g.nodes, names[i])
		for _, p := range wf.Graph.Parents(i) {
			c := wf.Tasks[i].Control
			if names[p] != names[i] && (c == nil || !c.Final) {
				g.edges = append(g.edges, names[p]+" -> "+names[i])
			}
		}
	}
	g.nodes, g.edges = sorted(g.nodes), sorted(g.edges)
	return g
}

// TestAsTheRealDAGMan reads each of our own DAGs with the real condor_dagman, which refuses the same files as Read, and
// finds the same graph.
func TestAsTheRealDAGMan(t *testing.T) {
	t.Parallel()
	newTools(t, own).compare(t, own, "empty.dag")
}

// compare reads each .dag below a folder, which was copied, with both the real DAGMan and Read. Only Read refuses a DAG
// without nodes.
func (c tools) compare(t *testing.T, folder, empty string) {
	t.Helper()
	version := c.version(t)
	limit := make(chan struct{}, 16) // each process spends most of its time waiting
	var all sync.WaitGroup
	eachDAG(t, folder, func(name string) {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			theirs, ours := c.graph(t, name, version), graph{}
			wf, _, err := readIn(folder, name)
			if err == nil {
				ours = asDAGMan(wf)
			}
			if name == empty {
				ours.taken = true
			}
			if diff := cmp.Diff(theirs, ours, cmp.AllowUnexported(graph{})); diff != "" {
				t.Errorf("%s: %v (-condor_dagman +Read):\n%s", name, err, diff)
			}
		})
	})
	all.Wait()
}

// TestStructuresAsTheRealDAGMan reads the DAGs in the tables of the tests of Read with the real condor_dagman.
func TestStructuresAsTheRealDAGMan(t *testing.T) {
	t.Parallel()
	c := newTools(t, own)
	version := c.version(t)
	dir := func(i int) string { return fmt.Sprintf("structure%d", i) }
	for i, s := range structures {
		for name, text := range withJobs(s.files) {
			c.write(t, filepath.Join(dir(i), name), text)
		}
		c.write(t, filepath.Join(dir(i), "w.dag"), s.dag)
	}
	c.give(t) // before any process creates and removes files there
	var all sync.WaitGroup
	for i, s := range structures {
		dir := dir(i)
		all.Go(func() {
			wf, _, err := readIn(c.folder, filepath.Join(dir, "w.dag"))
			if err != nil {
				t.Errorf("%s: %v", s.name, err)
				return
			}
			theirs := c.graph(t, filepath.Join(dir, "w.dag"), version)
			// This release does not support the syntax.
			if strings.HasSuffix(s.name, "newer") || strings.HasPrefix(s.dag, "\ufeff") {
				theirs = asDAGMan(wf)
			}
			if diff := cmp.Diff(theirs, asDAGMan(wf), cmp.AllowUnexported(graph{})); diff != "" {
				t.Errorf("%s (-condor_dagman +Read):\n%s", s.name, diff)
			}
		})
	}
	all.Wait()
}

// TestAsTheRealCondorSubmit creates jobs from each description with the real condor_submit.
func TestAsTheRealCondorSubmit(t *testing.T) {
	t.Parallel()
	c := newTools(t, own)
	for name, text := range beside {
		c.write(t, name, text)
	}
	for name, d := range descriptions {
		text := whole(d.text)
		if !strings.Contains(text, "queue") { // DAGMan adds it
			text += "queue\n"
		}
		c.write(t, "x", text)
		out := c.run(t, c.folder, "condor_submit", "JOB=N", "given=it's", "-dry-run", "-", "x")
		if diff := cmp.Diff(d.want, dryJobs(out)); diff != "" {
			t.Errorf("%s (-want +condor_submit):\n%s\n%s", name, diff, out)
		}
	}
}

// TestWhatTheRealOnesRead reads the output of Write with condor_dagman and condor_submit: the graph is the same, and
// the jobs agree with the tasks.
func TestWhatTheRealOnesRead(t *testing.T) {
	t.Parallel()
	c := newTools(t, own)
	odd := []string{"", "a b", "it's", `"q"`, `\`, `\"`, "$(JOB)", "$$(Memory)", "$", "a;b=c", "é", "#", "'"}
	wf := &workflow.Workflow{Name: "it's $odd"}
	for i := range 4 {
		wf.Tasks = append(wf.Tasks, workflow.Task{
			ID: fmt.Sprintf("t %d", i), Name: "odd", Argv: append([]string{"/bin/echo", fmt.Sprint(i)}, odd[i*3:i*3+3]...),
			Env: map[string]string{"A": odd[i*3+1], "B": fmt.Sprint(i)}, Outputs: []string{fmt.Sprintf("out $%d", i)},
			Streams:   workflow.Streams{Stdout: fmt.Sprintf("out $%d", i), Stderr: "err"},
			Resources: corral.Resources{CPUs: 2, MemoryMiB: 100 + i, DiskMiB: 2048},
			Control:   &workflow.Control{Priority: i, Final: i == 3},
		})
	}
	wf.Tasks[3].Control.Priority = 0
	g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	wf.Graph = g
	files := folder{}
	if err := dagman.Write(wf, files.create); err != nil {
		t.Fatal(err)
	}
	name := files.dag()
	for file, text := range files {
		c.write(t, file, text)
	}
	version := c.version(t)
	want := graph{[]string{"t_0", "t_1", "t_2", "t_3"}, []string{"t_0 -> t_1", "t_0 -> t_2"}, true}
	if diff := cmp.Diff(want, c.graph(t, name, version), cmp.AllowUnexported(graph{})); diff != "" {
		t.Errorf("the graph (-want +condor_dagman):\n%s", diff)
	}
	pair := regexp.MustCompile(`(\w+)=("(?:\\.|[^"])*")`)
	for i, want := range jobs(wf) {
		args := []string{fmt.Sprintf("JOB=t_%d", i)}
		_, vars, _ := strings.Cut(files[name], fmt.Sprintf("VARS t_%d ", i))
		vars, _, _ = strings.Cut(vars, "\n")
		for _, v := range pair.FindAllStringSubmatch(vars, -1) {
			value, err := strconv.Unquote(v[2])
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, v[1]+"="+value)
		}
		out := c.run(t, c.folder, "condor_submit", append(args, "-dry-run", "-", "odd.sub")...)
		if diff := cmp.Diff(want, onlyJob(out)); diff != "" {
			t.Errorf("task %d (-want +condor_submit):\n%s\n%s", i, diff, out)
		}
	}
}

// onlyJob returns the job of dryJobs if there is exactly one; its dollar signs have the form that they would have in
// the schedd.
func onlyJob(out string) job {
	all := dryJobs(out)
	if len(all) != 1 {
		return job{}
	}
	for _, list := range [][]string{all[0].Args, all[0].Env} {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], "$$(DOLLARDOLLAR)", "$$")
		}
	}
	return all[0]
}

// dryJobs parses the output of condor_submit -dry-run: the common attributes of all jobs, and then the attributes of
// each job.
func dryJobs(out string) []job {
	common := classad.Ad{}
	var own []classad.Ad
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case !ok:
		case name == "ProcId":
			own = append(own, classad.Ad{})
		case len(own) == 0:
			common[name] = classad.ParseOld(value)
		default:
			own[len(own)-1][name] = classad.ParseOld(value)
		}
	}
	var all []job
	for _, ad := range own {
		text := func(name string) string {
			if s, ok := ad.Text(name); ok {
				return s
			}
			s, _ := common.Text(name)
			return s
		}
		number := func(name string) int {
			n, _ := common.Int(name)
			return int(n)
		}
		stream := func(name string) string {
			if text(name) == os.DevNull {
				return ""
			}
			return strings.TrimPrefix(filepath.Join(text("Iwd"), text(name)), filepath.Join("/var/tmp", base(text("Iwd")))+"/")
		}
		j := job{In: stream("In"), Out: stream("Out"), Err: stream("Err"), CPUs: number("RequestCpus"),
			MemoryMiB: number("RequestMemory"), DiskMiB: (number("RequestDisk") + 1023) / 1024}
		if args := text("Args"); args != "" {
			j.Args = strings.Fields(args)
		} else if args, err := condor.Arguments(`"` + strings.ReplaceAll(text("Arguments"), `"`, `""`) + `"`); err == nil {
			j.Args = args
		}
		if env, err := condor.Environment(`"` + strings.ReplaceAll(text("Environment"), `"`, `""`) + `"`); err == nil {
			for _, name := range slices.Sorted(maps.Keys(env)) {
				j.Env = append(j.Env, name+"="+env[name])
			}
		}
		all = append(all, j)
	}
	return all
}

// base returns the first folder below /var/tmp of a path.
func base(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/var/tmp/"), "/")
	return first
}
