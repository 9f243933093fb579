package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// Glideins that have ended leave the world together, as soon as they outnumber the others: a world does not grow with
// the time for which it is simulated, and few changes have to move the rest.
func TestEndedGlideinsLeaveTheWorld(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	for range 10 {
		r.must(CreateGlidein{Glidein: forever()})
	}
	for id, want := range []int{10, 10, 10, 10, 10, 4, 4, 4, 1, 0} { // that are in the world
		r.must(AskGlidein{Glidein: corral.GlideinID(id + 1), Ask: corral.AskCancel})
		if got := len(r.Glideins); got != want {
			t.Errorf("when %d of 10 glideins have ended, %d are in the world, want %d", id+1, got, want)
		}
	}
}

// A late report about an attempt that has ended replaces the kept version of this attempt only.
func TestLateReport(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	for range 3 {
		r.must(CreateGlidein{Glidein: forever()})
		r.must(Submit{Kind: corral.PilotJob, Glidein: r.lastGlidein})
		r.must(MoveJob{r.lastJob, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired}})
	}
	if r.Held.Until.IsZero() {
		t.Error("three attempts without workers do not hold the site")
	}
	r.must(NoteWorkers{2, 4})
	for what, jobs := range map[string][]corral.Job{"evidence": r.Told, "pace": r.Over} {
		workers := map[corral.JobID]int{}
		for _, j := range jobs {
			workers[j.ID] = j.Workers
		}
		if diff := cmp.Diff(map[corral.JobID]int{1: 0, 2: 4, 3: 0}, workers); diff != "" || len(jobs) != 3 {
			t.Errorf("%s: workers of %d attempts (-want +got):\n%s", what, len(jobs), diff)
		}
	}
	if _, err := r.apply(NoteWorkers{3, 1}); err != nil || !r.Held.Until.IsZero() {
		t.Errorf("the last attempt had a worker: %v, held until %s", err, r.Held.Until)
	}
}

// A late report is also applied to an attempt that provides no evidence about the site.
func TestLateReportOfAnAttemptWithoutEvidence(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	r.must(CreateGlidein{Glidein: forever()})
	r.must(Submit{Kind: corral.PilotJob, Glidein: 1})
	r.must(MoveJob{1, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeDuplicate}})
	r.must(NoteWorkers{1, 2})
	if a := r.Glideins[0].Attempts; len(a) != 1 || a[0].Workers != 2 || len(r.Told) > 0 {
		t.Errorf("attempts %+v, evidence %+v", a, r.Told)
	}
}

// While two attempts of a glidein overlap, reports about the second are applied after the end of the first.
func TestEndOfAnOverlappedAttempt(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	g := forever()
	g.Overlap = corral.Seconds(10 * time.Minute)
	r.must(CreateGlidein{Glidein: g})
	r.must(Submit{Kind: corral.PilotJob, Glidein: 1})
	r.must(MoveJob{1, corral.JobEvent{Move: corral.JobStart}})
	r.must(Submit{Kind: corral.PilotJob, Glidein: 1})
	r.must(MoveJob{1, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired}})
	r.must(MoveJob{2, corral.JobEvent{Move: corral.JobStart}})
	if got := r.Glideins[0]; got.Reason != "attempt 2 RUNNING" {
		t.Errorf("the glidein is %s: %s", got.State, got.Reason)
	}
}

// A glidein that is already in the world is refused, and nothing changes.
func TestCreateGlideinTwice(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	r.must(CreateGlidein{Glidein: forever()})
	for _, tt := range []struct {
		id   corral.GlideinID
		want string // "": it is accepted
	}{{1, "glidein 1 follows glidein 1"}, {3, ""}, {2, "glidein 2 follows glidein 3"}} {
		g := forever()
		g.ID = tt.id
		_, err := r.Apply(CreateGlidein{Glidein: g, Cluster: r.embedded}, r.now)
		if tt.want == "" && err != nil || tt.want != "" && (corral.KindOf(err) != corral.Internal || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("glidein %d: %v, want %q", tt.id, err, tt.want)
		}
	}
	if len(r.Glideins) != 2 {
		t.Errorf("%d glideins, want 2", len(r.Glideins))
	}
}

// An attempt may lose each of its glidein's hosts, as long as it is live.
func TestLoseHost(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	g := forever()
	g.Hosts = 3
	r.must(CreateGlidein{Glidein: g})
	r.must(Submit{Kind: corral.PilotJob, Glidein: 1})
	r.must(Submit{Kind: corral.SetupJob, Package: digest})
	lose := func(job corral.JobID, host int) ([]corral.Entry, error) {
		return r.Apply(LoseHost{job, corral.LostHost{Host: host, Why: "disk"}}, r.now)
	}
	for _, tt := range []struct {
		what    string
		job     corral.JobID
		host    int
		entries int
		want    corral.Kind // of the error; "": none
	}{
		{"the last host", 1, 2, 1, ""},
		{"the same once more", 1, 2, 0, ""},
		{"a host that it does not have", 1, 3, 0, corral.Invalid},
		{"a setup job's", 2, 0, 0, corral.NotFound},
		{"an unknown job's", 9, 0, 0, corral.NotFound},
	} {
		entries, err := lose(tt.job, tt.host)
		if kind := corral.KindOf(err); len(entries) != tt.entries || err != nil && kind != tt.want || err == nil && tt.want != "" {
			t.Errorf("%s: %d entries, %v, want %d, %s", tt.what, len(entries), err, tt.entries, tt.want)
		}
	}
	if lost := r.find(1).Lost; len(lost) != 1 || lost[0].Host != 2 {
		t.Errorf("it has lost %v", lost)
	}
	r.must(AskGlidein{Glidein: 1, Ask: corral.AskCancel})
	r.must(MoveJob{1, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeLost}})
	if _, err := lose(1, 0); corral.KindOf(err) != corral.Conflict {
		t.Errorf("an attempt that has ended loses a host: %v", err)
	}
}

// A hold is derived from the last ended attempts only, as the store reads them. Attempts that ended in the future, by a
// clock that was set back since, do not count.
func TestHoldRestsOnTheLastAttempts(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	var ended []corral.Job // newest first
	check := func(what string) {
		t.Helper()
		past := slices.DeleteFunc(slices.Clone(ended), func(j corral.Job) bool { return j.EndedAt.After(r.now) })
		if diff := cmp.Diff(corral.NewHold(past[:min(len(past), corral.HoldHistory)]), r.Held); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for n := range 2 * corral.HoldHistory {
		r.must(CreateGlidein{Glidein: corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}}})
		r.must(Submit{Kind: corral.PilotJob, Glidein: r.lastGlidein})
		r.must(MoveJob{r.lastJob, corral.JobEvent{Move: corral.JobSubmit}})
		r.must(MoveJob{r.lastJob, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeLost}})
		j := corral.Job{Kind: corral.PilotJob, State: corral.JobEnded, Outcome: corral.OutcomeLost, EndedAt: r.now}
		ended = append([]corral.Job{j}, ended...)
		check(fmt.Sprintf("after %d attempts", n+1))
		r.now = r.now.Add(10 * time.Minute)
	}
	r.now = r.now.Add(-35 * time.Minute)
	r.must(CreateGlidein{Glidein: forever()})
	check("after the clock was set back")
}
