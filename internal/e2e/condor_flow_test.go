//go:build sites

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// From nothing to jobs on a pool of one's own, and back to nothing.
func TestCondorMainFlow(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t)
	u.timed("up", func() { u.must("up") })
	u.timed("package build", func() { u.must("package", "build", "--from-debian", "trixie") })
	u.timed("cluster create", func() { u.must("cluster", "create", "mine", "--kind", "condor") })
	u.timed("site create", func() { u.must("site", "create", "here", "--contact", "local:", "--batch", "fork", "--wait") })
	var g corral.Glidein
	u.timed("glidein create", func() {
		g = read[corral.Glidein](u.user, "glidein", "create", "--site", "here", "--cluster", "mine", "--hosts", "2", "--cpus", "2", "--wait")
	})
	cpus := 0
	for _, line := range strings.Fields(u.sh("condor_status -constraint 'CorralGlidein == " + strconv.Itoa(int(g.ID)) + "' -af Cpus")) {
		n, _ := strconv.Atoi(line)
		cpus += n
	}
	if cpus != 4 {
		t.Errorf("condor_status says %d Cpus are ours, want 4", cpus)
	}
	u.timed("job", u.job)
	u.timed("DAG", u.diamond)
	u.timed("run", u.tasks)
	u.timed("held", u.held)
	history := u.must("glidein", "history", strconv.Itoa(int(g.ID)))
	for _, event := range []string{"setup ", "allocation ", " submit ", " broker ", " start "} {
		if !strings.Contains(history, event) {
			t.Errorf("glidein history has no event%s:\n%s", event, history)
		}
	}
	site := read[corral.Site](u.user, "site", "show", "here")
	u.timed("down", func() { u.must("down") })
	if left := u.processes(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, err := os.Stat(site.Root); !os.IsNotExist(err) {
		t.Errorf("the site's root: %v, want none", err)
	}
	for _, f := range files(t, u.dir) {
		if !strings.HasPrefix(f, "data") && !strings.HasPrefix(f, "cache/corral-downloads") && f != "state" && f != "cache" && f != "run" && f != "greedy.json" && f != "steps.json" {
			t.Errorf("left behind: %s", f)
		}
	}
}

// job has one job bring its input, and its output back.
func (u *condorUser) job() {
	u.t.Helper()
	u.write("in.txt", "brought along")
	u.write("job.sub", `executable = /bin/cat
transfer_executable = false
should_transfer_files = YES
arguments = in.txt
transfer_input_files = in.txt
output = job.out
error = job.err
log = job.log
queue
`)
	u.sh("condor_submit -terse job.sub; condor_wait -wait 300 job.log")
	if got := u.content("job.out"); got != "brought along" {
		u.t.Errorf("the job printed %q; its log:\n%s", got, u.content("job.log"))
	}
}

// diamond has DAGMan run four jobs.
func (u *condorUser) diamond() {
	u.t.Helper()
	u.write("node.sub", `executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo $(name)'"
output = dag.$(name)
log = nodes.log
queue
`)
	var dag strings.Builder
	for _, name := range []string{"top", "left", "right", "bottom"} {
		dag.WriteString("JOB " + name + " node.sub\nVARS " + name + " name=\"" + name + "\"\n")
	}
	dag.WriteString("PARENT top CHILD left right\nPARENT left right CHILD bottom\n")
	u.write("diamond.dag", dag.String())
	u.sh("condor_submit_dag diamond.dag; condor_wait -wait 300 diamond.dag.dagman.log")
	for _, name := range []string{"top", "left", "right", "bottom"} {
		if got := u.content("dag." + name); got != name {
			u.t.Errorf("node %s printed %q:\n%s", name, got, u.content("diamond.dag.dagman.out"))
		}
	}
}

// tasks runs a workflow whose tasks bring files back, the last of them those of all others.
func (u *condorUser) tasks() {
	u.t.Helper()
	all := steps(4, 0)
	last := task{id: "last", script: "cat t*.txt >last.txt", out: []string{"last.txt"}, estimate: time.Second}
	for _, k := range all {
		last.parents, last.in = append(last.parents, k.id), append(last.in, k.out...)
	}
	r := read[corral.Run](u.user, "run", u.workflow("steps", append(all, last)...), "--cluster", "mine")
	if r.State != corral.RunSucceeded || r.Tasks.Done != r.Tasks.Total {
		u.t.Fatalf("run: %+v", r)
	}
	wantOutputs(u.t, r.Dir, len(all))
	if way := r.Report.Transfers; len(way) != 1 || way[0].Site != "here" || way[0].Jobs != 5 || way[0].Bytes <= 0 {
		u.t.Errorf("the report says %+v of the way of files, want that of five jobs", way)
	}
	if b, err := os.ReadFile(filepath.Join(r.Dir, "data", "last.txt")); err != nil || strings.Count(string(b), "\n") != len(all) {
		u.t.Errorf("the last task's output is %q (%v)", b, err)
	}
}

// held has a task take too much memory in an HTCondor job; whoever asked for the run reads why.
func (u *condorUser) held() {
	u.t.Helper()
	greedy := task{id: "greedy", script: "x=$(head -c 600000000 /dev/zero | tr '\\0' x); sleep 60", estimate: time.Second, memory: 64}
	a := u.corral("run", u.workflow("greedy", greedy), "--cluster", "mine", "--retries", "0")
	if a.code != 1 || !strings.Contains(a.stderr, "the 64 MiB of memory that it asked for") {
		u.t.Errorf("exit code %d, want 1 and a reason:\n%s%s", a.code, a.stdout, a.stderr)
	}
}
