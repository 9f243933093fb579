//go:build sites

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// wantNo checks that a command was refused with a sentence, and left nothing.
func (u *user) wantNo(code int, words []string, args ...string) {
	u.t.Helper()
	a := u.corral(args...)
	if a.code != code || strings.Count(strings.TrimSpace(a.stderr), "\n") > 1 {
		u.t.Errorf("corral %s: exit code %d, want %d and one sentence:\n%s", strings.Join(args, " "), a.code, code, a.stderr)
	}
	for _, w := range words {
		if !strings.Contains(a.stderr, w) {
			u.t.Errorf("corral %s: no %q in:\n%s", strings.Join(args, " "), w, a.stderr)
		}
	}
}

// What a Slurm would refuse, or take and never start, is refused at once and in words; nothing is left of it.
func TestBadSlurm(t *testing.T) {
	t.Parallel()
	slurm := startAccounting(t)
	nodesUp.RLock()
	defer nodesUp.RUnlock()
	u := newUser(t, slurm.Environ()...)
	u.must("up")
	root := u.dir + "/far"
	create := func(more ...string) []string {
		return append([]string{"site", "create", "hpc", "--contact", "local:", "--batch", "slurm", "--root", root}, more...)
	}
	const no, change = "accepts no job with these options", "change --queue, --account"
	u.wantNo(3, []string{no, "invalid partition specified: nowhere", change}, create("--account", "corral", "--queue", "nowhere")...)
	u.wantNo(3, []string{no, "Invalid account or account/partition combination", change}, create("--account", "theirs")...)
	u.wantNo(3, []string{no, "Invalid account or account/partition combination", change}, create("--account", "corral", "--queue", "theirs")...)
	u.wantNo(3, []string{no, "Invalid qos specification", change}, create("--account", "corral", "--qos", "forbidden")...)
	u.wantNo(3, []string{no, "Invalid qos specification", change}, create("--account", "corral", "--qos", "nosuch")...)
	u.wantNo(3, []string{"queue normal of slurm", "MaxJobsPerUser of QOS idle is 0", "another --qos"}, create("--account", "corral", "--qos", "idle")...)
	u.wantNo(3, []string{no}, create("--site-opt", "--no-such-option")...)
	if sites := read[[]corral.Site](u, "site", "list", "--all"); len(sites) != 1 {
		t.Errorf("the sites are %v", sites)
	}
	u.wantNothingOf(slurm, root)
	u.must(create("--account", "corral", "--wait", "--timeout", "5m")...)
	ask := func(more ...string) []string { return append([]string{"glidein", "create", "--site", "hpc"}, more...) }
	u.wantNo(3, []string{"queue", `no queue "nowhere"`, "it has "}, ask("--queue", "nowhere")...)
	u.wantNo(3, []string{"max_walltime_s of queue", "site probe hpc"}, ask("--walltime", "2000h")...)
	u.wantNo(3, []string{"cpus of queue"}, ask("--cpus", "3")...)
	u.wantNo(3, []string{"nodes of queue"}, ask("--hosts", "5")...)
	u.wantNo(3, []string{"gpus of queue"}, ask("--gpus", "99")...)
	u.wantNo(3, []string{"memory_mib of queue"}, ask("--memory", "100GiB")...)
	if glideins := read[[]corral.Glidein](u, "glidein", "list", "--all"); len(glideins) != 0 {
		t.Errorf("the glideins are %v", glideins)
	}
	hopeless := u.hopeless(slurm)
	u.surveyed()
	u.limited()
	u.wantNo(1, []string{"never starts it: QOSMaxWallDurationPerJobLimit"}, "glidein", "wait", hopeless, "--timeout", "5m")
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.wantNothingOf(slurm, root)
	u.must("down")
}

// wantNothingOf checks that nothing is at the root of a site, nor in its queue.
func (u *user) wantNothingOf(slurm *gridsitetest.Slurm, root string) {
	u.t.Helper()
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		u.t.Errorf("something is at %s: %v", root, err)
	}
	if left := say(u.t, slurm, "squeue", "-h", "-p", "normal"); left != "" {
		u.t.Errorf("in the queue: %s", left)
	}
}

// hopeless asks for a glidein whose options are not the site's own, so that what they allow is not known: Slurm takes it,
// and never starts it. It says why.
func (u *user) hopeless(slurm *gridsitetest.Slurm) (id string) {
	u.t.Helper()
	id = u.must("glidein", "create", "--site", "hpc", "--qos", "tight", "--walltime", "31m", "-q")
	u.until("it says why it waits", time.Minute, func() bool {
		state, why := u.glidein(id).Shown()
		return state == "QUEUED" && why == "hpc says: QOSMaxWallDurationPerJobLimit"
	})
	if list := u.must("glidein", "list"); !strings.Contains(list, "hpc says: QOSMaxWallDurationPerJobLimit") {
		u.t.Errorf("it is not in the list:\n%s", list)
	}
	if waits := say(u.t, slurm, "squeue", "-h", "-p", "normal"); !strings.Contains(waits, "QOSMaxWall") {
		u.t.Errorf("the queue has %q", waits)
	}
	return id
}

// surveyed has the site probed: a node says what it sees.
func (u *user) surveyed() {
	u.t.Helper()
	u.must("site", "probe", "hpc")
	f := read[corral.Site](u, "site", "show", "hpc").Facts
	if f == nil || f.Outbound == nil || !*f.Outbound || f.Shared == nil || !*f.Shared || len(f.Queues) == 0 || len(f.Notes) > 0 {
		u.t.Errorf("the facts are %+v; want a node that sees all", f)
	}
}

// limited has the site use a QOS with limits, which are then the site's. One that may not be is refused.
func (u *user) limited() {
	u.t.Helper()
	u.wantNo(3, []string{"accepts no job with these options", "Invalid qos specification"}, "site", "set", "hpc", "--qos", "forbidden")
	u.wantNo(3, []string{"MaxJobsPerUser of QOS idle is 0"}, "site", "set", "hpc", "--qos", "idle")
	u.must("site", "set", "hpc", "--qos", "tight")
	f := read[corral.Site](u, "site", "show", "hpc").Facts
	if f.MaxSubmit != 3 || f.MaxJobs != 2 || f.Shared == nil || !*f.Shared {
		u.t.Errorf("the facts are %+v; want those of the QOS, and what the node said", f)
	}
	u.wantNo(3, []string{"max_walltime_s of queue", "30m0s"}, "glidein", "create", "--site", "hpc", "--walltime", "31m")
}
