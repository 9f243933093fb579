//go:build sites

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// slowSbatch is the sbatch of a head node: it takes the first pilot of each site, and says nothing until it is let go;
// then it submits what it has taken. It submits that of the site "taken" at once.
const slowSbatch = `#!/bin/sh
case " $*" in
*" --test-only"* | *" --help"*) exec %[1]s "$@" ;;
*" --job-name=corral-pilot-"*) ;;
*) exec %[1]s "$@" ;;
esac
for batch; do :; done
root=${batch%%%%/jobs/*}
mkdir "$root.held" 2>/dev/null || exec %[1]s "$@"
mkfifo "$root.held/go"
id=
case $root in
*/taken) id=$(%[1]s "$@") || exit ;;
esac
mv "$root.held/go" "$root.held/gate"
read -r _ <"$root.held/gate"
[ -n "$id" ] || id=$(%[1]s "$@") || exit
echo "$id" >"$root.held/new"
mv "$root.held/new" "$root.held/id"
echo "$id"
`

// slowHead starts the head node of a Slurm that has such an sbatch.
func (u *user) slowHead(slurm *gridsitetest.Slurm) *gridsitetest.SSHD {
	u.t.Helper()
	environ := slurm.Environ()
	bin := filepath.Dir(slurm.Command("sbatch").Path)
	if err := os.Mkdir(u.dir+"/bin", 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(u.dir+"/bin/sbatch", fmt.Appendf(nil, slowSbatch, bin+"/sbatch"), 0o755); err != nil {
		u.t.Fatal(err)
	}
	sshd := gridsitetest.StartSSHD(u.t, "SetEnv PATH="+u.dir+"/bin:"+strings.TrimPrefix(environ[0], "PATH=")+" "+environ[1])
	if err := os.Symlink(sshd.SSH(""), u.dir+"/.ssh"); err != nil {
		u.t.Fatal(err)
	}
	return sshd
}

// A lateGlidein is one whose first submission its site's sbatch has taken, and not answered.
type lateGlidein struct {
	*user
	slurm   *gridsitetest.Slurm
	root    string // the site's
	id      string
	workers int
}

// submitLate creates a glidein, and returns when its submission is held.
func (u *user) submitLate(slurm *gridsitetest.Slurm, site string, hosts, cpus int) lateGlidein {
	u.t.Helper()
	g := lateGlidein{user: u, slurm: slurm, root: u.dir + "/" + site, workers: hosts}
	g.id = u.must("glidein", "create", "--site", site, "--hosts", strconv.Itoa(hosts), "--cpus", strconv.Itoa(cpus), "--walltime", "20m", "-q")
	u.until("the submission to be held", 3*time.Minute, func() bool {
		_, err := os.Stat(g.root + ".held/gate")
		return err == nil
	})
	return g
}

// letThrough lets the submission go on, and returns the id of the job that it becomes.
func (g lateGlidein) letThrough() string {
	g.t.Helper()
	gate, err := os.OpenFile(g.root+".held/gate", os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		g.t.Fatalf("the submission waits no more: %v", err)
	}
	defer gate.Close()
	if _, err := gate.WriteString("\n"); err != nil {
		g.t.Fatal(err)
	}
	var id []byte
	g.until("the late submission", time.Minute, func() bool {
		id, err = os.ReadFile(g.root + ".held/id")
		return err == nil
	})
	return strings.TrimSpace(string(id))
}

// jobs lists ID STATE of the jobs of the site that Slurm remembers.
func (g lateGlidein) jobs(states string) []string {
	g.t.Helper()
	out, err := g.slurm.Command("squeue", "--noheader", "--states="+states, "--format=%A %T %Z").CombinedOutput()
	if err != nil {
		g.t.Fatalf("squeue: %v: %s", err, out)
	}
	var jobs []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], g.root+"/jobs/corral-pilot-") {
			jobs = append(jobs, f[0]+" "+f[1])
		}
	}
	return jobs
}

const live = "PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING"

// wantOne checks that one job of the glidein is left, which never had more workers than were asked for; it is not the
// one that came late.
func (g lateGlidein) wantOne(late string) {
	g.t.Helper()
	var left []string
	g.until("one job alone", time.Minute, func() bool {
		left = g.jobs(live)
		return len(left) == 1
	})
	var now corral.Glidein
	g.until("its workers to be on record", time.Minute, func() bool {
		now = g.glidein(g.id)
		return len(now.Attempts) > 0 && now.Attempts[0].State == corral.JobRunning && now.Attempts[0].Workers >= g.workers
	})
	if len(now.Attempts) != 1 || now.Attempts[0].Workers != g.workers {
		g.t.Fatalf("glidein %s has attempts %+v, want one that never had more than %d workers", g.id, now.Attempts, g.workers)
	}
	id := now.Attempts[0].SiteJobID
	if left[0] != id+" RUNNING" || id == late {
		g.t.Errorf("the site has %v, want only %s, which runs; %s came late", left, id, late)
	}
	registered := 0
	for _, w := range g.user.workers() {
		if strconv.Itoa(int(w.Glidein)) == g.id {
			registered++
		}
	}
	if registered != g.workers {
		g.t.Errorf("glidein %s has %d workers, want %d", g.id, registered, g.workers)
	}
}

func (g lateGlidein) wantHistory(want string) {
	g.t.Helper()
	g.until("the history to say that "+want, time.Minute, func() bool { return strings.Contains(g.must("glidein", "history", g.id), want) })
}

// slurmctld is killed between submissions and their answers, and the answers are lost with the connection. What comes
// in after it was looked up and repeated is a second job, and starts no worker: on a free node it finds that another one
// has, and behind a full queue it is cancelled. A submission that was taken is found, and not repeated.
func TestLateSubmissions(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := startSlurm(t)
	sshd := u.slowHead(slurm)
	u.must("up")
	sites := []string{"free", "full", "taken"}
	for _, site := range sites {
		u.must("site", "create", site, "--contact", sshd.Contact(), "--batch", "slurm", "--root", u.dir+"/"+site)
	}
	free, full := u.submitLate(slurm, "free", 1, 1), u.submitLate(slurm, "full", 2, 2)
	if err := slurm.EndController(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := slurm.Start(); err != nil {
		t.Fatal(err)
	}
	taken := u.submitLate(slurm, "taken", 1, 2)
	sshd.Stop()
	if n := len(append(free.jobs(live), full.jobs(live)...)); n != 0 {
		t.Errorf("%d jobs are there before their submissions went through", n)
	}
	sshd.Start(t)
	for _, g := range []lateGlidein{free, full, taken} {
		u.must("glidein", "wait", g.id, "--timeout", "5m")
	}

	late := free.letThrough()
	free.wantOne(late)
	free.wantHistory("it was submitted twice: the site's job " + late + " ") // cancelled, or gone before
	late = full.letThrough()
	full.wantOne(late)
	full.wantHistory("it was submitted twice: the site's job " + late + " was cancelled")
	first := strings.Join(taken.jobs("all"), ", ")
	if again := taken.letThrough(); first != again+" RUNNING" {
		t.Errorf("the site had %s, want %s alone, which was taken", first, again)
	}
	taken.wantOne("")

	u.must("glidein", "remove", free.id, full.id, taken.id, "--now", "--wait")
	if left := queue(t, slurm); left != "" {
		t.Errorf("left in the queue: %s", left)
	}
	for _, site := range sites {
		u.must("site", "remove", site)
	}
	u.until("the sites to be gone", time.Minute, func() bool { return len(read[[]corral.Site](u, "site", "list")) == 1 })
	for _, site := range sites {
		u.wantNothingAt(slurm, sshd, u.dir+"/"+site)
	}
	u.must("down")
}
