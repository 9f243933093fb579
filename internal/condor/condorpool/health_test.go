package condorpool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
)

func TestDaemonCheckIntervals(t *testing.T) {
	for name, test := range map[string]struct {
		sick, own, busy bool
		want            time.Duration
	}{
		"ours, idle":      {false, true, false, healthIdle},
		"ours, busy":      {false, true, true, healthEvery},
		"ours, sick":      {true, true, false, sickEvery},
		"elsewhere, busy": {false, false, true, healthIdle},
		"elsewhere, sick": {true, false, true, healthEvery},
	} {
		h := health{checked: noon, sick: test.sick}
		if got := h.wait(noon, test.own, test.busy); got != test.want {
			t.Errorf("%s: wait() = %v, want %v", name, got, test.want)
		}
	}
	if got := (health{}).wait(noon, true, false); got > 0 {
		t.Errorf("a pool that was just found is asked in %v, want at once", got)
	}
}

func TestDiagnose(t *testing.T) {
	for name, test := range map[string]struct {
		health condor.Health
		err    error
		wrong  string
		dead   bool
	}{
		"well":      {condor.Health{Master: 7}, nil, "", false},
		"no schedd": {condor.Health{Master: 7, Missing: []string{"Scheduler"}}, nil, "HTCondor is restarting what is missing: scheduler", false},
		"no master": {condor.Health{Missing: []string{"Collector"}}, nil, "the pool's master is not running; it is being restarted", true},
		"no answer": {condor.Health{Master: 7}, errors.New("timed\n out"), "the collector does not list the daemons: timed out", false},
	} {
		if wrong, dead := diagnose(test.health, test.err); wrong != test.wrong || dead != test.dead {
			t.Errorf("%s: diagnose() = %q, %v, want %q, %v", name, wrong, dead, test.wrong, test.dead)
		}
	}
}

// TestLiveAttempts: the attempts that may have workers, and the negotiator's configuration for them.
func TestLiveAttempts(t *testing.T) {
	glidein := corral.Glidein{Shape: corral.Shape{Hosts: 3}, Attempts: []corral.Job{
		{ID: 1, State: corral.JobEnded}, {ID: 2, State: corral.JobRunning}, {ID: 3, State: corral.JobQueued},
	}}
	c := corral.Cluster{ID: 5}
	live := attemptsOf(c, []corral.Glidein{glidein})
	want := "NEGOTIATOR_SLOT_CONSTRAINT = member(strcat(CorralAttempt, \" \", AuthenticatedIdentity), " +
		"{ \"\", \"2 glidein-2@corral.pool\", \"3 glidein-3@corral.pool\" })\n"
	if diff := cmp.Diff(want, liveText(live)); diff != "" {
		t.Errorf("liveText() (-want +got):\n%s", diff)
	}
	c.Attached = true
	if live = attemptsOf(c, []corral.Glidein{glidein}); len(live) != 2 || live[0].identity != "" || live[0].hosts != 3 {
		t.Errorf("attempts in a pool that is not ours: %+v, want two whose workers may be anybody", live)
	}
}
