package corral_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func TestJobLife(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	exit := 0
	j := corral.Job{Kind: corral.PilotJob, Glidein: 7, Number: 2, Tag: "t", State: corral.JobNew}
	for _, e := range []corral.JobEvent{
		{Move: corral.JobSubmit, At: at(1), SiteJobID: "99"},
		{Move: corral.JobQueue, At: at(2)},
		{Move: corral.JobStart, At: at(3)},
		{Move: corral.JobEnd, At: at(4), Outcome: corral.OutcomeExpired, ExitStatus: &exit, Reason: "walltime"},
	} {
		var err error
		if j, _, err = j.Apply(e, e.At); err != nil {
			t.Fatal(err)
		}
	}
	want := corral.Job{Kind: corral.PilotJob, Glidein: 7, Number: 2, Tag: "t", SiteJobID: "99",
		State: corral.JobEnded, Outcome: corral.OutcomeExpired, ExitStatus: &exit, Reason: "walltime",
		SubmittedAt: at(1), StartedAt: at(3), EndedAt: at(4), UpdatedAt: at(4)}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("after its life (-want +got):\n%s", diff)
	}
	if got := j.Name(); got != "attempt 2 of glidein 7" {
		t.Errorf("Name() = %q", got)
	}
	if got := (corral.Job{Kind: corral.SetupJob, Site: 1}).Name(); got != "setup job of site 1" {
		t.Errorf("Name() = %q", got)
	}
}

func TestJobRefusesOutcomeWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, e := range []corral.JobEvent{
		{Move: corral.JobStart, Outcome: corral.OutcomeDone},
		{Move: corral.JobEnd},
	} {
		j := corral.Job{Tag: "t", State: corral.JobQueued}
		if next, _, err := j.Apply(e, noon); corral.KindOf(err) != corral.Internal || !reflect.DeepEqual(next, j) {
			t.Errorf("Apply(%+v) = %+v, %v; want an internal error and no change", e, next, err)
		}
	}
}

func TestJobApply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := corral.Job{Tag: "t", State: corral.JobNew}
		at := noon
		for range 12 {
			at = at.Add(time.Second)
			e := corral.JobEvent{Move: rapid.SampledFrom(allEvents(corral.JobMoves)).Draw(t, "move"), At: at}
			if e.Move == corral.JobEnd {
				e.Outcome = rapid.SampledFrom(corral.Outcomes).Draw(t, "outcome")
			}
			next, _, err := j.Apply(e, at)
			if err == nil && !j.Live() {
				t.Fatalf("%s leads out of ENDED", e.Move)
			}
			if err != nil && !reflect.DeepEqual(next, j) {
				t.Fatalf("refused %s, and yet %+v became %+v", e.Move, j, next)
			}
			checkJob(t, next)
			j = next
		}
	})
}

// checkJob checks the invariants of a job in every state.
func checkJob(t *rapid.T, j corral.Job) {
	if (j.State == corral.JobEnded) != (j.Outcome != "") || (j.State == corral.JobEnded) == j.EndedAt.IsZero() {
		t.Fatalf("state %s, outcome %q and end %s do not agree", j.State, j.Outcome, j.EndedAt)
	}
	if j.State == corral.JobRunning && j.StartedAt.IsZero() {
		t.Fatal("RUNNING without a start")
	}
	if !j.StartedAt.IsZero() && j.StartedAt.Before(j.SubmittedAt) {
		t.Fatalf("started %s before it was submitted %s", j.StartedAt, j.SubmittedAt)
	}
}

// A job whose submission was not answered counts as submitted when it was requested, not when it was found. Otherwise
// its wait in the queue would be zero.
func TestAdoptedJobHasItsSubmission(t *testing.T) {
	t.Parallel()
	for _, move := range []corral.JobMove{corral.JobQueue, corral.JobStart} {
		j := corral.Job{Tag: "t", State: corral.JobNew, CreatedAt: noon}
		j, _, err := j.Apply(corral.JobEvent{Move: move, SiteJobID: "7"}, noon.Add(time.Hour))
		if err != nil || !j.SubmittedAt.Equal(noon) {
			t.Errorf("after %s: submitted at %s (%v), want %s", move, j.SubmittedAt, err, noon)
		}
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	setup := corral.Job{ID: 1, Kind: corral.SetupJob, SubmittedAt: noon, StartedAt: noon.Add(1), EndedAt: noon.Add(2)}
	pilot := corral.Job{ID: 2, Kind: corral.PilotJob, SubmittedAt: noon.Add(3)}
	cleanup := corral.Job{ID: 3, Kind: corral.CleanupJob, SubmittedAt: noon.Add(4), EndedAt: noon.Add(5)}
	want := []corral.TimelineEvent{
		{Name: "SetupSubmitted", At: noon, Job: 1},
		{Name: "SetupStarted", At: noon.Add(1), Job: 1},
		{Name: "SetupFinished", At: noon.Add(2), Job: 1},
		{Name: "GlideinSubmitted", At: noon.Add(3), Job: 2},
		{Name: "CleanupSubmitted", At: noon.Add(4), Job: 3},
		{Name: "CleanupFinished", At: noon.Add(5), Job: 3},
	}
	if diff := cmp.Diff(want, corral.Timeline(setup, pilot, cleanup)); diff != "" {
		t.Errorf("Timeline (-want +got):\n%s", diff)
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	setup := corral.Job{ID: 1, Kind: corral.SetupJob, SubmittedAt: at(0), StartedAt: at(1), EndedAt: at(3)}
	first := corral.Job{ID: 2, Kind: corral.PilotJob, SubmittedAt: at(4), StartedAt: at(9), EndedAt: at(20)}
	lost := corral.Job{ID: 3, Kind: corral.PilotJob, SubmittedAt: at(21), EndedAt: at(30)} // never started
	queued := corral.Job{ID: 4, Kind: corral.PilotJob, SubmittedAt: at(31)}
	cleanup := corral.Job{ID: 5, Kind: corral.CleanupJob, SubmittedAt: at(40), StartedAt: at(41), EndedAt: at(47)}
	var got []string
	for _, p := range corral.Phases(corral.Timeline(setup, first, lost, queued, cleanup)) {
		got = append(got, fmt.Sprintf("%s of job %d: %s", p.Name, p.Job, p.Took()))
	}
	want := []string{"setup of job 1: 3s", "allocation of job 2: 5s", "runtime of job 2: 11s", "cleanup of job 5: 7s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Phases (-want +got):\n%s", diff)
	}
}

func TestFurthest(t *testing.T) {
	t.Parallel()
	job := func(n int, s corral.JobState) corral.Job { return corral.Job{Number: n, State: s} }
	for _, tt := range []struct {
		attempts []corral.Job
		want     int // its number, 0: none
	}{
		{nil, 0},
		{[]corral.Job{job(1, corral.JobEnded)}, 0},
		{[]corral.Job{job(1, corral.JobRunning), job(2, corral.JobQueued)}, 1},
		{[]corral.Job{job(1, corral.JobEnded), job(2, corral.JobNew), job(3, corral.JobSubmitted)}, 3},
		{[]corral.Job{job(1, corral.JobRunning), job(2, corral.JobRunning)}, 2},
	} {
		g := corral.Glidein{Attempts: tt.attempts}
		got, ok := g.Furthest()
		if got.Number != tt.want || ok != (tt.want > 0) {
			t.Errorf("Furthest of %v = attempt %d, %v, want %d", tt.attempts, got.Number, ok, tt.want)
		}
	}
}
