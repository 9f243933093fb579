//go:build sites

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// pass makes two stages of n tasks each: the first write files, some of 1 MiB and some of most MiB, and the second read
// them.
func pass(n, most int, d time.Duration) (tasks []task) {
	for i := range n {
		mib := 1
		if i%2 == 1 {
			mib = most
		}
		first, second := fmt.Sprintf("w%03d", i), fmt.Sprintf("r%03d", i)
		tasks = append(tasks, task{id: first, out: []string{first + ".bin"}, bytes: mib << 20, estimate: d,
			script: fmt.Sprintf("sleep %.3f; head -c %d /dev/zero >%s.bin", d.Seconds(), mib<<20, first)})
		tasks = append(tasks, task{id: second, parents: []string{first}, in: []string{first + ".bin"}, estimate: d,
			script: fmt.Sprintf("sleep %.3f; wc -c <%s.bin", d.Seconds(), first)})
	}
	return tasks
}

// A run tells what the way of files to a site took, and the next plan reckons with it: what it asks for, what is checked
// of it, and what is simulated.
func TestPlansKnowTheWayOfFiles(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.far()
	files, most, each := 12, 16, 200*time.Millisecond
	if os.Getenv("LONG") != "" { // for the figures in docs/bench
		files, most, each = 16, 64, time.Second
	}
	work := u.workflow("pass", pass(files, most, each)...)
	auto := func() (corral.Run, plan.Plan) {
		got := u.run(strings.Fields(u.must("run", work, "--auto", "--site", "far", "--clustering", "none", "-q"))[0])
		if got.State != corral.RunSucceeded {
			t.Fatalf("run is %s: %s", got.State, got.Reason)
		}
		row := read[corral.Plan](u, "plan", "show", got.Labels[corral.PlanLabel])
		var pl plan.Plan
		if err := json.Unmarshal(row.Document, &pl); err != nil {
			t.Fatal(err)
		}
		return got, pl
	}
	first, blind := auto()
	if r := first.Report; len(r.Transfers) != 1 || r.Transfers[0].Site != "far" || r.Transfers[0].Jobs != 2*files ||
		r.Transfers[0].Bytes < int64(files*(1+most))<<20 || r.Transfers[0].Took <= 0 || r.Transfers[0].Bandwidth <= 0 {
		t.Fatalf("the report says %+v of the way of files", r.Transfers)
	}
	if len(blind.Assumed.Transfers) != 0 {
		t.Errorf("the first plan knows of %+v", blind.Assumed.Transfers)
	}
	second, known := auto()
	if w := known.Assumed.Transfers; len(w) != 1 || w[0].Site != "far" || w[0].Bandwidth <= 0 {
		t.Fatalf("the second plan knows of %+v", w)
	}
	var took corral.Seconds
	for _, at := range known.Schedule {
		took += at.Transfer
	}
	if took <= 0 {
		t.Error("no file travels in the second plan")
	}
	u.must("plan", "validate", second.Labels[corral.PlanLabel], work)
	u.must("plan", "validate", second.Labels[corral.PlanLabel])
	u.must("simulate", second.Labels[corral.PlanLabel], work)
	if shown := u.must("runs", "show", fmt.Sprint(second.ID)); !strings.Contains(shown, fmt.Sprintf("%d job(s) to site far and back", 2*files)) {
		t.Errorf("the report does not tell of the way of files:\n%s", shown)
	}
	t.Logf("predicted %s, took %s; with the way of files predicted %s, took %s: %+v", blind.Makespan,
		first.Report.Makespan, known.Makespan, second.Report.Makespan, second.Report.Transfers)
	u.must("down")
}
