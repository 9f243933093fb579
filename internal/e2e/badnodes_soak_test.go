//go:build sites && soak

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// A Slurm gives each job the one node that is broken: the glidein is tried until its site's circuit breaker opens, and
// a minute later on another node.
func TestBrokenNodeEatsJobs(t *testing.T) {
	t.Parallel()
	if !mayMount(t) {
		return
	}
	for _, c := range []struct{ name, fault, reason, lost string }{
		{"full scratch", fullScratch, "node %s: disk of ", "disk of "},
		{"another processor", `shadow 'exec /dev/null/pilot'`, "it ended with exit status 12", "it ended with exit status 12"},
		{"without the shared file system", `mount -t tmpfs tmpfs "$root"`, "its processes disappeared", "its processes disappeared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eatenJobs(t, c.fault, c.reason, c.lost)
		})
	}
}

// eatenJobs checks what becomes of a glidein while the node with that fault gets its jobs.
func eatenJobs(t *testing.T, fault, reason, lost string) {
	slurm := startSlurm(t)
	u := newUser(t, slurm.Environ()[1], "PATH="+bin+":"+strings.TrimPrefix(slurm.Environ()[0], "PATH="))
	root := u.dir + "/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", "local:", "--batch", "slurm", "--root", root, "--wait", "--timeout", "5m")
	node := u.spoil(slurm, 1, root, fault)
	id := u.must("glidein", "create", "--site", "hpc", "--retries", "5", "-q")
	u.must("glidein", "wait", id, "--timeout", "10m")
	g, history := u.glidein(id), u.must("glidein", "history", id)
	for i, a := range g.Attempts {
		if i == corral.AvoidAfter {
			break
		}
		if !strings.HasPrefix(a.Reason, strings.ReplaceAll(reason, "%s", node)) || len(a.Lost) != 1 || a.Lost[0].Node != node || !strings.HasPrefix(a.Lost[0].Why, lost) {
			t.Errorf("attempt %d is %s: %s; it lost %v", a.Number, a.State, a.Reason, a.Lost)
		}
	}
	if len(g.Attempts) != corral.AvoidAfter+1 || g.CPUsNow != 1 {
		t.Errorf("%d attempts, and %d cpus", len(g.Attempts), g.CPUsNow)
	}
	for _, words := range []string{"limit circuit breaker: the last 3 attempts at the site came to nothing", "the batch system is asked to avoid the nodes " + node} {
		if !strings.Contains(history, words) {
			t.Errorf("no %q in\n%s", words, history)
		}
	}
	if got := u.excluded(slurm, id); len(got) != 1 || got[0] != node {
		t.Errorf("Slurm was asked for other nodes than %v, want %s", got, node)
	}
	for _, w := range u.workers() {
		if w.Host == node {
			t.Errorf("a worker of %s is registered", node)
		}
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.must("down")
}

// The pool of a condor cluster never sees a node with a full scratch, or one that does not know HTCondor's loader, as it
// is where the C library is another.
func TestBrokenNodesJoinNoPool(t *testing.T) {
	t.Parallel()
	if !mayMount(t) {
		return
	}
	const wrongLibc = `for loader in "$root"/packages/*/lib/ld-*; do mount -t tmpfs tmpfs "${loader%/*}"; done`
	slurm := startSlurm(t)
	u := newCondorUser(t)
	u.env = append(u.env, slurm.Environ()[1], "PATH="+opened()+":"+strings.TrimPrefix(slurm.Environ()[0], "PATH="))
	u.startPool(t)
	root := filepath.Join(u.open, "far")
	u.must("site", "create", "hpc", "--contact", "local:", "--batch", "slurm", "--root", root, "--wait", "--timeout", "5m")
	u.must("glidein", "create", "--site", "hpc", "--cluster", "mine", "--wait", "--timeout", "5m") // HTCondor's package is there
	bad := map[string]string{
		u.spoil(slurm, 3, root, fullScratch): "disk of " + root,
		u.spoil(slurm, 4, root, wrongLibc):   "starting HTCondor: ",
	}
	a := u.corral("glidein", "create", "--site", "hpc", "--cluster", "mine", "--hosts", "4", "--wait", "--timeout", "5m")
	g, history := u.glidein("2"), u.must("glidein", "history", "2")
	if a.code != 0 || g.CPUsNow != 2 || !strings.Contains(a.stderr, "2 of 4 hosts work; ") {
		t.Errorf("exit code %d, %d cpus: %s", a.code, g.CPUsNow, a.stderr)
	}
	for node, words := range bad {
		if want := "node " + node + ": " + words; !strings.Contains(history, want) || !strings.Contains(a.stderr, want) {
			t.Errorf("no %q in %q, or in\n%s", want, a.stderr, history)
		}
	}
	for _, host := range strings.Fields(u.sh("condor_status -af CorralHost")) {
		if bad[host] != "" {
			t.Errorf("%s is in the pool", host)
		}
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.must("down")
}
