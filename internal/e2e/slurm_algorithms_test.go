//go:build sites

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/plan"
)

// fanned is a task, ten that wait for it, and one that waits for those.
func fanned(seconds time.Duration) []task {
	tasks := steps(12, seconds)
	for i := 1; i < 11; i++ {
		tasks[i].parents = []string{tasks[0].id}
		tasks[11].parents = append(tasks[11].parents, tasks[i].id)
	}
	return tasks
}

// Each algorithm plans a workflow on a real Slurm in whose queue others are, those that look at it see it, and auto says
// what each plan comes to. A run with auto asks for the pilots of the one that won, and is done.
func TestAlgorithmsOnSlurm(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	slurm := useSlurm(t)
	sshd, root := u.behindSSH(slurm), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait",
		"--timeout", "5m")
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	others := crowd{jobs: 3, cpus: 2, minutes: 2}.submit(t, slurm, 2)
	u.until("a job of somebody else", time.Minute, func() bool { return strings.Contains(queue(t, slurm), " R ") })
	file := u.workflow("fanned", fanned(2*time.Second)...)
	for _, by := range plan.Algorithms {
		made := read[struct {
			Plan plan.Plan `json:"plan"`
		}](u, "plan", file, "--site", "hpc", "--algorithm", string(by), "--dry-run").Plan
		looked := strings.Contains(strings.Join(made.Reasons, "\n"), "in queue ")
		if !made.Feasible || looked == (by == plan.Staircase || by == plan.VAR) {
			t.Errorf("%s: %+v", by, made)
		}
		if won := slices.IndexFunc(made.Contest, func(e plan.Entrant) bool { return e.Won }); by == plan.Auto &&
			(len(made.Contest) != len(plan.Algorithms)-1 || won < 0 || made.Contest[won].Algorithm != made.Algorithm) {
			t.Errorf("plans that were played: %+v", made.Contest)
		}
	}
	got := u.run(u.must("run", file, "--auto", "--site", "hpc", "--algorithm", "auto", "-q"))
	if got.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", got.State, got.Reason)
	}
	wantOutputs(t, got.Dir, 12)
	t.Logf("plan %s:\n%s", got.Labels["plan"], u.must("plan", "show", got.Labels["plan"]))
	cancelled(t, slurm, others)
	u.must("plan", "release", got.Labels["plan"], "--wait")
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	u.must("down")
	u.wantNothingAt(slurm, sshd, root)
}

// cancelled ends other people's jobs.
func cancelled(t *testing.T, slurm *gridsitetest.Slurm, jobs []string) {
	t.Helper()
	if out, err := slurm.Command("scancel", jobs...).CombinedOutput(); err != nil {
		t.Errorf("scancel: %v: %s", err, out)
	}
}

// A pilot is asked for at two Slurms, of which somebody has the one for himself: the other's works, and what waits in
// the full queue is withdrawn as soon as its workers are there, long before the run is over. The waits are given, because
// a plan that looked at the queues would not ask at the full one.
func TestHedgedPilotAtTwoSlurms(t *testing.T) {
	t.Parallel()
	full, free := useSlurm(t), startSlurm(t, "NODES=1")
	u := newUser(t, "PATH="+bin+":"+strings.TrimPrefix(free.Environ()[0], "PATH="), free.Environ()[1])
	sshd, root := u.behindSSH(full), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "full", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait",
		"--timeout", "5m")
	u.must("site", "create", "free", "--contact", "local:", "--batch", "slurm", "--root", u.dir+"/near", "--wait", "--timeout", "5m")
	u.until("empty queues", time.Minute, func() bool { return queue(t, full)+queue(t, free) == "" })
	var cpus int
	for _, s := range read[[]struct {
		Processors int `json:"processors"`
	}](u, "site", "slots", "full") {
		cpus += s.Processors
	}
	out, err := full.Command("sbatch", "--parsable", fmt.Sprintf("--ntasks=%d", cpus), "--time=30", "--output=/dev/null",
		"--wrap=sleep 1800").CombinedOutput()
	if err != nil {
		t.Fatalf("sbatch: %v: %s", err, out)
	}
	u.until("a full queue", time.Minute, func() bool { return strings.Contains(queue(t, full), " R ") })
	file := u.workflow("fanned", u.behind("gate", 1, steps(12, time.Second))...)
	made := u.must("plan", file, "--hedge", "--site", "full", "--site", "free", "--shape", "1", "--objective", "cost",
		"--queue-wait", "10s", "--default-runtime", "1s", "--apply", "-q")
	run := u.must("run", file, "--label", "plan="+made, "-d", "-q")
	var first, second corral.Glidein
	u.until("a withdrawal", 2*time.Minute, func() bool {
		for _, g := range read[[]corral.Glidein](u, "glidein", "list", "--all", "-l", "plan="+made) {
			switch g.Labels["pilot"] {
			case "0":
				first = g
			case "1":
				second = g
			}
		}
		return first.State.Terminal() || second.State.Terminal()
	})
	works, withdrawn := first, second
	if first.State.Terminal() {
		works, withdrawn = second, first
	}
	if second.Labels["hedges"] != "0" || works.SiteName != "free" || withdrawn.SiteName != "full" || works.State.Terminal() {
		t.Errorf("it has %+v, and %+v is withdrawn", works, withdrawn)
	}
	if why := u.must("glidein", "history", fmt.Sprint(withdrawn.ID)); !strings.Contains(why, "came first") {
		t.Errorf("what became of the one that is withdrawn:\n%s", why)
	}
	if left := queue(t, full); strings.Count(left, "\n") > 0 {
		t.Errorf("in the full queue: %s", left)
	}
	u.let("gate")
	u.must("runs", "wait", run, "--timeout", "5m")
	wantOutputs(t, u.run(run).Dir, 12)
	whole := read[struct {
		Plan plan.Plan `json:"plan"`
	}](u, "plan", "show", made).Plan
	if len(whole.Pilots) != 2 || len(plan.Hedged(whole.Pilots)) != 1 {
		t.Errorf("pilots of the plan: %+v", whole.Pilots)
	}
	t.Logf("its price: %q", whole.Reasons)
	cancelled(t, full, []string{strings.TrimSpace(string(out))})
	u.must("plan", "release", made, "--wait")
	u.until("empty queues", time.Minute, func() bool { return queue(t, full)+queue(t, free) == "" })
	u.must("down")
	u.wantNothingAt(full, sshd, root)
}
