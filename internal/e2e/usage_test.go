package e2e

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// What tasks took is what their journal says, however often corrald is killed meanwhile, and all of it is in one row.
func TestUsageSurvivesKills(t *testing.T) {
	t.Parallel()
	usageSurvives(t, 3)
}

// usageSurvives kills corrald so often while it accounts.
func usageSurvives(t *testing.T, kills int) {
	t.Helper()
	u := newUser(t)
	u.must("up")
	u.must("glidein", "create", "--site", "local", "--hosts", "2", "--wait", "--timeout", "5m")
	tasks := u.behind("go", 4, steps(12, 200*time.Millisecond))
	run := u.must("run", u.workflow("fold", tasks...), "--detach", "-q")
	for range kills {
		u.until("tasks run", 2*time.Minute, func() bool { return u.run(run).Tasks.Running > 0 })
		u.kill(u.running())
		u.must("up")
	}
	u.let("go")
	u.must("runs", "wait", run)
	var took float64 // seconds, by the tasks' own times
	for _, k := range read[[]api.TaskStatus](u, "runs", "tasks", run) {
		took += k.EndedAt.Sub(k.StartedAt).Seconds()
	}
	report := u.run(run).Report
	got := read[api.Usage](u, "usage")
	var used, lost float64
	for _, r := range got.Items {
		if r.Workflow == "fold" {
			used, lost = used+r.Used*3600, lost+r.Lost*3600
		}
		if r.User != "local" || r.Site != "local" {
			t.Errorf("a row of user %q at site %q", r.User, r.Site)
		}
	}
	if math.Abs(used-took) > 0.5 {
		t.Errorf("%.3f core-seconds are used, and the tasks ran for %.3f", used, took)
	}
	if math.Abs(lost-time.Duration(report.LostWork).Seconds()) > 0.5 {
		t.Errorf("%.3f core-seconds are lost, and the report says %.3f", lost, time.Duration(report.LostWork).Seconds())
	}
	if sum := got.Total.Used + got.Total.Idle + got.Total.Lost; math.Abs(sum-got.Total.Allocated) > 1e-9 {
		t.Errorf("the total is %+v", got.Total)
	}
	// It does not change any more, but for what the pilots hold; and what is over does not go with its records.
	u.must("runs", "remove", run, "--purge")
	u.kill(u.running())
	u.must("up")
	u.must("glidein", "remove", "1", "--wait", "--now")
	again := read[api.Usage](u, "usage", "--by", "workflow")
	if math.Abs(again.Total.Used-got.Total.Used) > 1e-9 || again.Total.Allocated < got.Total.Allocated {
		t.Errorf("later it is %+v, was %+v", again.Total, got.Total)
	}
	table := u.must("usage", "--since", "2h", "--by", "site", "--csv")
	if !strings.HasPrefix(table, "site,allocated_core_hours,used_core_hours,idle_core_hours,lost_core_hours\nlocal,") {
		t.Errorf("as CSV it is %q", table)
	}
	u.must("down")
}

// Who listens hears of a run to its end, through a death of corrald.
func TestEventsSurviveAKill(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "5m")
	listener := u.command("events", "-o", "json")
	out, err := listener.StdoutPipe()
	if err == nil {
		err = listener.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Process.Kill(); _ = listener.Wait() }()
	events := json.NewDecoder(out)
	var e api.Event
	if err := events.Decode(&e); err != nil || e.Kind != api.EventReady {
		t.Fatalf("the first event is %+v, %v", e, err)
	}
	run := u.must("run", u.workflow("fold", u.behind("go", 1, steps(3, 10*time.Millisecond))...), "--detach", "-q")
	u.kill(u.running())
	u.must("up")
	u.let("go")
	u.must("runs", "wait", run)
	for {
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
		var r corral.Run
		if e.Kind == "run" && json.Unmarshal(e.Data, &r) == nil && r.State == corral.RunSucceeded {
			break
		}
	}
	u.must("down")
}
