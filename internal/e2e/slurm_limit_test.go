//go:build sites && soak

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// Where a user may have two jobs at once, eight serial tasks run two by two as jobs, and all at once in one pilot of
// four nodes.
func TestSlurmLimitOfJobsBindsNoTasks(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := startSlurm(t, "ACCOUNTING=yes")
	out, err := slurm.Command("sacctmgr", "-i", "modify", "user", "where", "name=root", "set", "MaxJobs=2").CombinedOutput()
	if err != nil {
		t.Fatalf("sacctmgr: %v: %s", err, out)
	}
	u.until("the controller to know of the limit", 5*time.Minute, func() bool {
		out, err = slurm.Command("scontrol", "--oneliner", "show", "assoc_mgr", "users=root", "flags=assoc").CombinedOutput()
		return err == nil && bytes.Contains(out, []byte("MaxJobs=2("))
	})
	const tasks = 8
	times := filepath.Join(u.dir, "times")
	line := func(together int) string { // a task that ends no sooner than so many have begun
		return fmt.Sprintf("echo 1 $(date +%%s.%%N) >>%[1]s; until [ $(grep -c '^1' %[1]s) -ge %[2]d ]; do sleep .2; done; sleep 1; echo -1 $(date +%%s.%%N) >>%[1]s", times, together)
	}
	for range tasks {
		if out, err := slurm.Command("sbatch", "--quiet", "--output=/dev/null", "--chdir="+u.dir, "--wrap", line(2)).CombinedOutput(); err != nil {
			t.Fatalf("sbatch: %v: %s", err, out)
		}
	}
	from := time.Now()
	u.until("the end of all jobs", 5*time.Minute, func() bool { return queue(t, slurm) == "" })
	took := time.Since(from)
	if most := u.mostAtOnce(times, tasks); most != 2 {
		t.Errorf("%d jobs ran at once, want 2", most)
	}
	sshd := u.behindSSH(slurm)
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", u.dir+"/far", "--wait", "--timeout", "5m")
	u.must("glidein", "create", "--site", "hpc", "--hosts", "4", "--cpus", "2", "--wait", "--timeout", "5m")
	if err := os.Remove(times); err != nil {
		t.Fatal(err)
	}
	var serial []task
	for i := range tasks {
		serial = append(serial, task{id: fmt.Sprintf("t%d", i), script: line(tasks), estimate: time.Minute})
	}
	from = time.Now()
	if got := u.run(u.must("run", u.workflow("serial", serial...), "-q")); got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	t.Logf("%s as jobs, %s in a pilot", took, time.Since(from))
	if most := u.mostAtOnce(times, tasks); most != tasks {
		t.Errorf("%d tasks ran at once in the pilot, want %d", most, tasks)
	}
	u.must("down")
}

// mostAtOnce reads when how many more were running.
func (u *user) mostAtOnce(file string, tasks int) (most int) {
	u.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2*tasks {
		u.t.Fatalf("%d lines, want %d:\n%s", len(lines), 2*tasks, b)
	}
	slices.SortFunc(lines, func(a, b string) int {
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		return strings.Compare(x, y)
	})
	now := 0
	for _, line := range lines {
		change, _, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(change)
		if err != nil {
			u.t.Fatal(err)
		}
		now += n
		most = max(most, now)
	}
	return most
}
