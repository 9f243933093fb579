//go:build sites

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// What a Slurm has room for, while somebody holds all of it for ten minutes at most, and when that job is over: slots,
// what a start costs others, and a workflow's plan on them.
func TestSlotsOfSlurm(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.behindSSH(slurm), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait",
		"--timeout", "5m")
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	type offered struct {
		Processors int     `json:"processors"`
		Start      float64 `json:"start_s"`
	}
	empty := read[[]offered](u, "site", "slots", "hpc")
	if len(empty) != 1 || empty[0].Start != 0 || empty[0].Processors < 2 {
		t.Fatalf("an empty queue has room for %+v", empty)
	}
	sbatch := slurm.Command("sbatch", "--parsable", "--exclusive", "--nodes=1-99", "--ntasks="+strconv.Itoa(empty[0].Processors),
		"--time=10", "--output=/dev/null", "--wrap=sleep 600")
	out, err := sbatch.CombinedOutput()
	if err != nil {
		t.Fatalf("sbatch: %v: %s", err, out)
	}
	job := strings.TrimSpace(string(out))
	u.until("a full queue", time.Minute, func() bool { return strings.Contains(queue(t, slurm), " R ") })
	full := read[[]offered](u, "site", "slots", "hpc")
	if len(full) != 1 || full[0].Start <= 0 || full[0].Start > 600 || full[0].Processors != empty[0].Processors {
		t.Errorf("a full queue has room for %+v", full)
	}
	prices := read[[]struct {
		Start float64 `json:"start_s"`
		Wait  float64 `json:"wait_cpu_hours"`
	}](u, "site", "price", "hpc", "--walltime", "5m")
	if len(prices) == 0 || prices[0].Start <= 0 || prices[0].Start > 600 || prices[0].Wait != 0 {
		t.Errorf("starts and what they cost others: %+v", prices)
	}
	if a := u.corral("site", "price", "hpc", "--start", "10s"); a.code != 3 || !strings.Contains(a.stderr, "hold too many cpus") {
		t.Errorf("in ten seconds: %+v", a)
	}
	file := u.workflow("steps", steps(2, time.Second)...)
	if plan := u.must("plan", "--slots", "--site", "hpc", file); !strings.Contains(plan, "hpc") {
		t.Errorf("a plan on slots: %s", plan)
	}
	if out, err := slurm.Command("scancel", job).CombinedOutput(); err != nil {
		t.Fatalf("scancel: %v: %s", err, out)
	}
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	if again := read[[]offered](u, "site", "slots", "hpc"); len(again) != 1 || again[0].Start != 0 {
		t.Errorf("when it is over there is room for %+v", again)
	}
	u.must("site", "remove", "hpc", "--wait")
	u.must("down")
	u.wantNothingAt(slurm, sshd, root)
}
