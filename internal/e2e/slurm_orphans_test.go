//go:build sites

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// The database is lost while pilots of it run and wait in a Slurm: one is adopted and works on, the others are cancelled.
func TestSlurmOrphans(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.behindSSH(slurm), filepath.Join(u.dir, "far")
	create := func() {
		u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait", "--timeout", "5m")
	}
	u.must("up")
	create()
	works := u.must("glidein", "create", "--site", "hpc", "--hosts", "2", "--cpus", "2", "--walltime", "20m", "--wait", "--timeout", "5m", "-q")
	unused := u.must("glidein", "create", "--site", "hpc", "--cpus", "2", "--wait", "--timeout", "5m", "-q")
	waits := u.must("glidein", "create", "--site", "hpc", "--hosts", "4", "--cpus", "2", "-q")
	tag := map[string]string{}
	for _, id := range []string{works, unused, waits} {
		u.until("the attempt to be in Slurm's queue", 5*time.Minute, func() bool {
			attempts := u.glidein(id).Attempts
			if len(attempts) == 1 && attempts[0].SiteJobID != "" {
				tag[id] = attempts[0].Tag
			}
			return tag[id] != ""
		})
	}
	workers := pids(slices.DeleteFunc(u.workers(), func(w corral.Worker) bool { return fmt.Sprint(w.Glidein) != works }))

	u.kill(u.running())
	lost, err := filepath.Glob(filepath.Join(u.dir, "state", "corral", "corrald.db*"))
	if err != nil || len(lost) == 0 {
		t.Fatalf("the database is %v, %v", lost, err)
	}
	for _, file := range lost {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	u.must("up")
	create()
	states := map[string]string{}
	for _, o := range read[[]api.Orphan](u, "site", "orphans", "hpc") {
		states[o.Tag] = o.State
	}
	if states[tag[works]] != "RUNNING" || states[tag[unused]] != "RUNNING" || states[tag[waits]] != "QUEUED" {
		t.Errorf("of %v the orphans are %v", tag, states)
	}
	u.must("site", "orphans", "hpc", tag[works], "--adopt")
	u.until("its workers", 5*time.Minute, func() bool { return len(u.workers()) == 2 })
	u.must("site", "orphans", "hpc", "--cancel")
	if got := u.run(u.must("run", u.workflow("few", steps(8, 100*time.Millisecond)...), "-q")); got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	if now := pids(u.workers()); now != workers {
		t.Errorf("the workers were %s, and are %s", workers, now)
	}
	u.must("site", "remove", "hpc", "--wait", "--timeout", "5m")
	u.wantNothingAt(slurm, sshd, root)
	u.must("down")
}
