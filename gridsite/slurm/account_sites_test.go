//go:build sites

package slurm_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// TestAccountAndMaintenanceOfRealSlurm checks that the survey of a Slurm with accounts finds the account's remaining
// allowance and the maintenance of nodes; reservations with other purposes do not count.
func TestAccountAndMaintenanceOfRealSlurm(t *testing.T) {
	t.Parallel()
	cluster, err := gridsitetest.StartSlurm([]string{"NODES=2", "ACCOUNTING=1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := cluster.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	whoami, err := exec.CommandContext(t.Context(), "id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	user := "Users=" + strings.TrimSpace(string(whoami))
	run("sacctmgr", "-i", "modify", "account", "corral", "set", "GrpTRESMins=cpu=600")
	one := run("sinfo", "-h", "-p", "short", "-o", "%N")
	run("scontrol", "create", "reservation", "ReservationName=all", "StartTime=now+2hours", "Duration=60",
		"Flags=MAINT,IGNORE_JOBS", "Nodes=ALL", user)
	run("scontrol", "create", "reservation", "ReservationName=some", "StartTime=now+1day", "Duration=30", "Flags=MAINT",
		"Nodes="+one, user)
	run("scontrol", "create", "reservation", "ReservationName=school", "StartTime=now+2days", "Duration=60", "Nodes="+one,
		user)
	site := slurm.New(cluster.On(local.Conn{}), "/tmp/nowhere/site")
	var facts corral.SiteFacts
	gridsitetest.Until(t, "Slurm to know the limit", func() bool { // the database tells the controller
		facts, err = site.Survey(t.Context(), corral.BatchOptions{Account: "corral"})
		if err != nil {
			t.Fatal(err)
		}
		return facts.Allowance != nil
	})
	if want := (corral.Allowance{Account: "corral", CPUMinutes: 600}); *facts.Allowance != want {
		t.Errorf("allowance %+v, want %+v", *facts.Allowance, want)
	}
	if len(facts.Notes) > 0 {
		t.Errorf("notes %q", facts.Notes)
	}
	for _, want := range []struct {
		name, queue string
		nodes       int
		begins      time.Duration
		lasts       time.Duration
	}{
		{"all", "normal", 2, 2 * time.Hour, time.Hour}, {"all", "short", 1, 2 * time.Hour, time.Hour},
		{"some", "normal", 1, 24 * time.Hour, 30 * time.Minute}, {"some", "short", 1, 24 * time.Hour, 30 * time.Minute},
	} {
		i := slices.IndexFunc(facts.Maintenance, func(m corral.Maintenance) bool {
			return m.Name == want.name && m.Queue == want.queue
		})
		if i < 0 {
			t.Errorf("%+v is not among %+v", want, facts.Maintenance)
			continue
		}
		m := facts.Maintenance[i]
		off := m.From.Sub(facts.At.Add(want.begins)).Abs()
		if m.Nodes != want.nodes || m.To.Sub(m.From) != want.lasts || off > 10*time.Minute {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if slices.ContainsFunc(facts.Maintenance, func(m corral.Maintenance) bool { return m.Name == "school" }) {
		t.Errorf("a reservation for people counts: %+v", facts.Maintenance)
	}
}
