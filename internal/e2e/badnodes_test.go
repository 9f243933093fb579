//go:build sites

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// What may be wrong with a node, as lines of sh that run in mount namespaces of what Slurm starts there. $root is the
// site's; $pilot is a program that does as a pilot does, once shadow has put another in the place of the package's.
const (
	fullScratch = `for job in "$root"/jobs/corral-pilot-*; do
	mkdir -p "$job/scratch"; mount -t tmpfs -o size=1m,mode=1777 tmpfs "$job/scratch"
done`
	// Clocks of a machine's namespaces differ in how long they have been running, but not in what time it is: this node's
	// words are written over on their way.
	badClock = `shadow '"$pilot" "$@" | sed -u "s/\"now\":\"20/\"now\":\"19/"'`
)

// mayMount reports whether nodes can be spoilt.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("only root may have Slurm's nodes see other file systems")
		return false
	}
	return true
}

// noRoute is what is wrong with a node that has no network: its pilots enter an empty one, which is there already, because
// a kernel that is busy with others takes long to make one.
func noRoute(t *testing.T) string {
	t.Helper()
	keeper := exec.Command("unshare", "--net", "sh", "-c", "echo there; exec cat")
	in, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := keeper.Wait(); err != nil {
			t.Error(err)
		}
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("a network namespace: %q, %v", said, err)
	}
	return fmt.Sprintf(`shadow 'exec nsenter --net=/proc/%d/ns/net "$pilot" "$@"'`, keeper.Process.Pid)
}

// spoil has a node of a Slurm, by its number, be one on which something is wrong for jobs of the site with that root. It
// returns the node's name.
func (u *user) spoil(slurm *gridsitetest.Slurm, number int, root, fault string) (node string) {
	t := u.t
	t.Helper()
	names, err := slurm.Command("sinfo", "-h", "-N", "-p", "normal", "-o", "%N").Output()
	if err != nil {
		t.Fatalf("the nodes' names: %v", err)
	}
	node = strings.Fields(string(names))[number-1]
	bin := filepath.Dir(slurm.Command("scontrol").Path)
	stepd := filepath.Join(filepath.Dir(bin), "sbin", "slurmstepd")
	script := fmt.Sprintf(`#!/bin/sh
if [ "$1" != spoilt ]; then exec unshare --mount "$0" spoilt "$@"; fi
shift
root='%s'
shadow() {
	printf '#!/bin/sh\npilot=%%s\n%%s\n' '%s/pilot' "$1" >"$0.pilot"
	chmod 755 "$0.pilot"
	for program in "$root"/packages/*/bin/pilot; do mount --bind "$0.pilot" "$program"; done
}
{
%s
} </dev/null >>"$0.log" 2>&1
exec %s "$@"
`, root, opened(), fault, stepd)
	file := filepath.Join(slurm.Dir, node+".stepd")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(slurm.Dir, "run", node+".pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.until("the end of slurmd", time.Minute, func() bool { return syscall.Kill(pid, 0) != nil })
	slurmd := exec.Command(filepath.Join(filepath.Dir(stepd), "slurmd"), "-f", filepath.Join(slurm.Dir, "slurm.conf"), "-N", node, "-d", file)
	slurmd.Env = append(os.Environ(), "CORRAL_SLURM_DIR="+slurm.Dir+"/", "SLURM_CONF="+slurm.Dir+"/slurm.conf")
	if out, err := slurmd.CombinedOutput(); err != nil {
		t.Fatalf("slurmd of %s: %v: %s", node, err, out)
	}
	return node
}

// Three nodes of six are broken. A pilot goes on without them, and who waits for it is told; after three the batch system is
// asked for others.
func TestBrokenNodes(t *testing.T) {
	t.Parallel()
	if !mayMount(t) {
		return
	}
	u := newUser(t)
	slurm := startSlurm(t, "NODES=6", "CPUS=4")
	sshd := u.behindSSH(slurm)
	root := u.dir + "/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait", "--timeout", "5m")
	bad := map[string]string{ // :: node → what is said of it
		u.spoil(slurm, 2, root, fullScratch): "disk of " + root,
		u.spoil(slurm, 3, root, noRoute(t)):  "no route to corrald at tls:",
		u.spoil(slurm, 4, root, badClock):    "clock: corrald's is 8",
	}
	var ids []string
	for range corral.AvoidAfter - 1 {
		ids = append(ids, u.must("glidein", "create", "--site", "hpc", "--hosts", "4", "--walltime", "10m", "-q"))
	}
	last := u.corral("glidein", "create", "--site", "hpc", "--hosts", "4", "--walltime", "10m", "--wait", "--timeout", "5m", "-o", "json")
	var g corral.Glidein
	if err := json.Unmarshal([]byte(last.stdout), &g); err != nil || last.code != 0 || !strings.Contains(last.stderr, g.Losses()) {
		t.Errorf("create --wait: exit code %d, %v:\n%s%s", last.code, err, last.stdout, last.stderr)
	}
	for _, id := range append(ids, strconv.Itoa(int(g.ID))) {
		u.must("glidein", "wait", id, "--timeout", "5m")
		g, history := u.glidein(id), u.must("glidein", "history", id)
		if g.CPUsNow != 1 || !strings.HasPrefix(g.Losses(), "1 of 4 hosts work; ") {
			t.Errorf("glidein %s has %d cpus, and of its hosts it says %q", id, g.CPUsNow, g.Losses())
		}
		for node, words := range bad {
			if want := "node " + node + ": " + words; !strings.Contains(history, want) || !strings.Contains(g.Losses(), want) {
				t.Errorf("no %q in %q, or in\n%s", want, g.Losses(), history)
			}
		}
	}
	a := u.corral("glidein", "create", "--site", "hpc", "--hosts", "3", "--walltime", "10m", "--wait", "--timeout", "5m", "-q")
	id := strings.TrimSpace(a.stdout)
	if g := u.glidein(id); a.code != 0 || a.stderr != "" || g.CPUsNow != 3 {
		t.Errorf("the next one: exit code %d, %d cpus of 3: %s", a.code, g.CPUsNow, a.stderr)
	}
	excluded := u.excluded(slurm, id)
	for node := range bad {
		if !slices.Contains(excluded, node) {
			t.Errorf("Slurm was asked for other nodes than %v, and not for others than %s", excluded, node)
		}
	}
	for _, w := range u.workers() {
		if bad[w.Host] != "" {
			t.Errorf("a worker of %s is registered", w.Host)
		}
	}
	u.forgive(bad)
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	if left := queue(t, slurm); left != "" {
		t.Errorf("left in the queue: %s", left)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the root is still there: %v", err)
	}
	for _, id := range ids {
		if a := u.glidein(id).Attempts[0]; a.Workers != 1 || len(a.Lost) != 3 {
			t.Errorf("attempt of glidein %s had %d workers at once, and lost %v", id, a.Workers, a.Lost)
		}
	}
	u.must("down")
}

// forgive checks that site hpc shows the nodes that it avoids, each with its reason, and avoids none once they are forgiven.
func (u *user) forgive(bad map[string]string) {
	u.t.Helper()
	avoided := read[corral.Site](u, "site", "show", "hpc").Avoided
	for _, b := range avoided {
		if bad[b.Node] == "" || !strings.HasPrefix(b.Why, bad[b.Node]) || b.Attempts != corral.AvoidAfter {
			u.t.Errorf("site hpc avoids %+v", b)
		}
	}
	if after := read[corral.Site](u, "site", "forgive", "hpc").Avoided; len(avoided) != len(bad) || len(after) > 0 {
		u.t.Errorf("site hpc avoids %+v, and once they are forgiven %+v", avoided, after)
	}
	id := u.must("glidein", "create", "--site", "hpc", "--walltime", "1m", "-q")
	u.until("the next attempt in the queue", time.Minute, func() bool {
		attempts := u.glidein(id).Attempts
		return len(attempts) > 0 && attempts[0].SiteJobID != ""
	})
	if history := u.must("glidein", "history", id); strings.Contains(history, "is asked to avoid the nodes") {
		u.t.Errorf("forgiven nodes are avoided:\n%s", history)
	}
}

// excluded returns the nodes which Slurm was asked to keep the last attempt of a glidein off.
func (u *user) excluded(slurm *gridsitetest.Slurm, id string) []string {
	u.t.Helper()
	attempts := u.glidein(id).Attempts
	out, err := slurm.Command("squeue", "-h", "-j", attempts[len(attempts)-1].SiteJobID, "-o", "%x").Output()
	if err != nil {
		u.t.Fatal(err)
	}
	names, err := slurm.Command("scontrol", "show", "hostnames", strings.TrimSpace(string(out))).Output()
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.Fields(string(names))
}
