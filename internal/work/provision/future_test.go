package provision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// A plan is made for a little less time than there is until its deadline, so that it may begin later than it was made.
func TestAPlanBeginsEarlyEnoughForItsDeadline(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 12, 4, 15, 0, 0, 0, time.UTC)
	p := &plan.Plan{Goal: plan.Goal{DeadlineAt: made.Add(2 * time.Hour)}.Planned(made)}
	if want := corral.Seconds(119 * time.Minute); p.Goal.Deadline != want {
		t.Errorf("the plan has %s, want %s", p.Goal.Deadline, want)
	}
	p.Makespan = p.Goal.Deadline
	for begun, want := range map[time.Duration]string{
		0: "", time.Minute: "", 61 * time.Second: "it would end at 2026-12-04T17:00:01Z if it began now, after its deadline " +
			"at 2026-12-04T17:00:00Z: make the plan again",
	} {
		err := provision.CheckTime(corral.Plan{BeganAt: made.Add(begun)}, p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("begun after %s: %v, want %q", begun, err, want)
		}
	}
	if left := p.Goal.From(made.Add(time.Hour)).Deadline; left != corral.Seconds(time.Hour) {
		t.Errorf("after an hour the plan has %s left", left)
	}
	if err := provision.CheckTime(corral.Plan{BeganAt: made.Add(time.Hour * 48)}, &plan.Plan{}); err != nil {
		t.Errorf("without an instant: %v", err)
	}
}
