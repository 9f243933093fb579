package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/google/go-cmp/cmp"
)

func TestJobKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := newPilot(w.createGlidein(w.newGlidein()))
	j.TokenDigest = strings.Repeat("0f", 32)
	j.TokenEndsAt = time.Date(2031, 2, 3, 4, 5, 6, 7e6, time.UTC)
	exit := 3
	w.write(func(tx *store.Tx) (err error) {
		if j, err = tx.CreateJob(j); err != nil {
			return err
		}
		if j.State != corral.JobNew || j.Number != 1 {
			t.Errorf("created %+v", j)
		}
		if _, err = tx.MoveJob(j.ID, submitted); err != nil {
			return err
		}
		if _, err = tx.AskJob(j.ID, corral.AskDrain, "enough"); err != nil {
			return err
		}
		if _, err = tx.LeaseJob(j.ID, "node7/123", "d1"); err != nil {
			return err
		}
		if _, err = tx.NoteWorkers(j.ID, 2); err != nil {
			return err
		}
		if _, err = tx.MoveJob(j.ID, started); err != nil {
			return err
		}
		j, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed,
			Transient: true, ExitStatus: &exit, Reason: "scratch is full"})
		return err
	})
	want := corral.Job{ID: j.ID, Kind: corral.PilotJob, Site: w.site.ID, Glidein: j.Glidein, Number: 1, Tag: j.Tag,
		SiteJobID: "4711", State: corral.JobEnded, Outcome: corral.OutcomeFailed, Transient: true, ExitStatus: &exit,
		Reason: "scratch is full", Asked: corral.AskDrain, Workers: 2, LeaseHolder: "node7/123", Session: "d1",
		TokenDigest: strings.Repeat("0f", 32), TokenEndsAt: j.TokenEndsAt, CreatedAt: j.CreatedAt,
		SubmittedAt: j.CreatedAt, StartedAt: j.CreatedAt, EndedAt: j.CreatedAt, UpdatedAt: j.CreatedAt}
	w.view(func(tx *store.Tx) error {
		byID, err := tx.Job(j.ID)
		if diff := cmp.Diff(want, byID); diff != "" || err != nil {
			t.Errorf("Job: %v %s", err, diff)
		}
		byTag, err := tx.JobTagged(j.Tag)
		if diff := cmp.Diff(want, byTag); diff != "" || err != nil {
			t.Errorf("JobTagged: %v %s", err, diff)
		}
		return nil
	})
	story := "create >NEW, submit NEW>SUBMITTED, drain SUBMITTED>SUBMITTED, lease SUBMITTED>SUBMITTED, workers SUBMITTED>SUBMITTED, " +
		"start SUBMITTED>RUNNING, end RUNNING>ENDED"
	if got := w.story(corral.ObjectJob, int64(j.ID)); got != story {
		t.Errorf("history = %s, want %s", got, story)
	}
}

func TestJobNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.createGlidein(w.newGlidein()), w.createGlidein(w.newGlidein())
	setup := corral.Job{Kind: corral.SetupJob, Site: w.site.ID}
	for _, c := range []struct {
		job  corral.Job
		want int
	}{{newPilot(a), 1}, {newPilot(b), 1}, {newPilot(a), 2}, {setup, 1}, {setup, 2}, {newPilot(b), 2}} {
		c.job.Tag = newPilot(a).Tag
		w.write(func(tx *store.Tx) error {
			j, err := tx.CreateJob(c.job)
			if err != nil {
				return err
			}
			if j.Number != c.want {
				t.Errorf("%s has number %d, want %d", j.Name(), j.Number, c.want)
			}
			if j.Kind == corral.SetupJob {
				_, err = tx.MoveJob(j.ID, ended(corral.OutcomeDone))
			}
			return err
		})
	}
}

func TestCreateJobRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, over, live := w.createGlidein(w.newGlidein()), w.createGlidein(w.newGlidein()), w.createGlidein(w.newGlidein())
	first := w.attempt(asked)
	w.attempt(over, submitted, started, ended(corral.OutcomeIdle))
	var gone, other corral.Site
	w.write(func(tx *store.Tx) (err error) {
		if _, err = tx.AskGlidein(asked.ID, corral.AskDrain, ""); err != nil {
			return err
		}
		if _, err = tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"}); err != nil {
			return err
		}
		if other, err = readySite(tx, "other"); err != nil {
			return err
		}
		if gone, err = readySite(tx, "gone"); err != nil {
			return err
		}
		_, err = tx.MoveSite(gone.ID, corral.SiteForget, "")
		return err
	})
	elsewhere, sameTag := newPilot(live), newPilot(live)
	elsewhere.Site, sameTag.Tag = other.ID, first.Tag
	for _, c := range []struct {
		name string
		job  corral.Job
		want corral.Kind
	}{
		{"glidein asked to go", newPilot(asked), corral.Conflict},
		{"glidein is over", newPilot(over), corral.Conflict},
		{"no such glidein", newPilot(corral.Glidein{ID: 99, Site: w.site.ID}), corral.NotFound},
		{"no such site", corral.Job{Kind: corral.SetupJob, Site: 99, Tag: "x"}, corral.NotFound},
		{"deleted site", corral.Job{Kind: corral.CleanupJob, Site: gone.ID, Tag: "x"}, corral.Conflict},
		{"second setup at once", corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "x"}, corral.Conflict},
		{"elsewhere than its glidein", elsewhere, corral.Internal},
		{"tag of another", sameTag, corral.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.refused(c.want, func(tx *store.Tx) error { _, err := tx.CreateJob(c.job); return err })
		})
	}
}

// A site's clock may differ from ours: its times are stored as far as they are possible.
func TestMoveJobKeepsTimesInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()))
	created := j.CreatedAt
	at := func(e corral.JobEvent, at time.Time) corral.JobEvent { e.At = at; return e }

	j = w.move(j, at(submitted, created.Add(-time.Hour)))
	if !j.SubmittedAt.Equal(created) {
		t.Errorf("submitted at %v, before it was created at %v", j.SubmittedAt, created)
	}
	j = w.move(j, at(started, created.Add(time.Hour)))
	if j.StartedAt.Before(created) || j.StartedAt.After(time.Now()) {
		t.Errorf("started at %v, in the future", j.StartedAt)
	}
	j = w.move(j, ended(corral.OutcomeIdle))
	if j.EndedAt.Before(j.StartedAt) || !j.EndedAt.Equal(j.UpdatedAt) {
		t.Errorf("ended at %v, started at %v, updated at %v", j.EndedAt, j.StartedAt, j.UpdatedAt)
	}
}

func TestMoveJobKeepsAPossibleTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()))
	var seen time.Time
	for seen.Sub(j.CreatedAt) < 3*time.Millisecond { // until the clock has advanced
		w.write(func(tx *store.Tx) error { seen = tx.Now(); return nil })
	}
	happened := j.CreatedAt.Add(time.Millisecond)
	j = w.move(j, corral.JobEvent{Move: corral.JobStart, At: happened.Add(300 * time.Microsecond)})
	if !j.StartedAt.Equal(happened) || j.UpdatedAt.Before(seen) {
		t.Errorf("started at %v, updated at %v, want %v and not before %v", j.StartedAt, j.UpdatedAt, happened, seen)
	}
}

func TestMoveJobRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()), submitted, started, ended(corral.OutcomeIdle))
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.MoveJob(j.ID, started); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.MoveJob(99, started); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.JobTagged("nobody"); return err })
}

func TestAskJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()), submitted)
	for _, c := range []struct{ ask, want corral.Ask }{
		{corral.AskDrain, corral.AskDrain}, {corral.AskCancel, corral.AskCancel}, {corral.AskDrain, corral.AskCancel},
	} {
		w.write(func(tx *store.Tx) (err error) { j, err = tx.AskJob(j.ID, c.ask, ""); return err })
		if j.Asked != c.want {
			t.Errorf("after %s asked = %s, want %s", c.ask, j.Asked, c.want)
		}
	}
	j = w.attempt(w.createGlidein(w.newGlidein()), ended(corral.OutcomeLost))
	w.write(func(tx *store.Tx) (err error) { j, err = tx.AskJob(j.ID, corral.AskCancel, ""); return err })
	if j.Asked != corral.AskNothing {
		t.Errorf("an ended job was asked to %s", j.Asked)
	}
}

func TestLeaseJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()), submitted)
	leased := func(id corral.JobID, holder, session string) func(*store.Tx) error {
		return func(tx *store.Tx) error { _, err := tx.LeaseJob(id, holder, session); return err }
	}
	lease := func(id corral.JobID, holder string) func(*store.Tx) error { return leased(id, holder, "digest") }
	w.refused(corral.Invalid, lease(j.ID, ""))
	w.write(lease(j.ID, "node7/123"))
	w.write(lease(j.ID, "node7/123"))
	w.refused(corral.Conflict, lease(j.ID, "node8/99"))
	w.refused(corral.Conflict, leased(j.ID, "node7/123", "another secret's"))
	w.view(func(tx *store.Tx) error {
		got, err := tx.Job(j.ID)
		if got.Session != "digest" {
			t.Errorf("the session is %q, want the first one's", got.Session)
		}
		return err
	})
	w.refused(corral.Conflict, lease(j.ID, ""))
	w.refused(corral.NotFound, lease(99, "node7/123"))
	w.move(j, ended(corral.OutcomeLost))
	w.refused(corral.Conflict, lease(j.ID, "node7/123"))
	want := "create >NEW, submit NEW>SUBMITTED, lease SUBMITTED>SUBMITTED, end SUBMITTED>ENDED"
	if got := w.story(corral.ObjectJob, int64(j.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}

	setup := corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"}
	w.write(func(tx *store.Tx) (err error) { setup, err = tx.CreateJob(setup); return err })
	w.refused(corral.Invalid, lease(setup.ID, "node7/123"))
}

// Only a waiting job has a reason for its wait, until it is asked to end, and the reason never appears in its history.
func TestNoteWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()), submitted)
	note := func(why, want string) {
		t.Helper()
		w.write(func(tx *store.Tx) (err error) { j, err = tx.NoteWaits(j.ID, why); return err })
		if j.Reason != want {
			t.Errorf("after %q its reason is %q, want %q", why, j.Reason, want)
		}
	}
	note("Priority", "")
	w.move(j, corral.JobEvent{Move: corral.JobQueue})
	note("Priority", "Priority")
	note("Resources", "Resources")
	w.write(func(tx *store.Tx) error { _, err := tx.AskJob(j.ID, corral.AskCancel, ""); return err })
	note("Priority", "Resources")
	want := "create >NEW, submit NEW>SUBMITTED, queue SUBMITTED>QUEUED, cancel QUEUED>QUEUED"
	if got := w.story(corral.ObjectJob, int64(j.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestNoteWorkersKeepsTheMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.attempt(w.createGlidein(w.newGlidein()), submitted, started)
	for _, c := range []struct{ n, want int }{{1, 1}, {3, 3}, {2, 3}, {0, 3}} {
		w.write(func(tx *store.Tx) (err error) { j, err = tx.NoteWorkers(j.ID, c.n); return err })
		if j.Workers != c.want {
			t.Errorf("after %d workers = %d, want %d", c.n, j.Workers, c.want)
		}
	}
}

// A lost host that a pilot reports is recorded once, and so are further ones in its final report.
func TestHostsAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.newGlidein()
	n.Hosts = 3
	j := w.attempt(w.createGlidein(n), submitted, started)
	early := j.UpdatedAt
	second, third := corral.LostHost{Host: 1, Node: "n2", Why: "disk"}, corral.LostHost{Host: 2, Why: "refused"}
	lose := func(l corral.LostHost) func(*store.Tx) error {
		return func(tx *store.Tx) (err error) { j, err = tx.LoseHost(j.ID, l); return err }
	}
	w.write(lose(second))
	w.write(lose(corral.LostHost{Host: 1, Node: "n7"}))
	w.refused(corral.Invalid, lose(corral.LostHost{Host: 3}))
	w.write(func(tx *store.Tx) (err error) {
		j, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeDrained, Lost: []corral.LostHost{third, second}})
		return err
	})
	w.refused(corral.Conflict, lose(corral.LostHost{}))
	second.At, third.At = j.Lost[0].At, j.EndedAt
	if want := []corral.LostHost{second, third}; !slices.Equal(j.Lost, want) || second.At.Before(early) {
		t.Errorf("lost %v, want %v", j.Lost, want)
	}
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectJob, int64(j.ID), store.Page{})
		if said := entries[len(entries)-2]; said.Event != "node failed" || said.Reason != "node n2: disk; 2 of 3 hosts are left" {
			t.Errorf("history says %q: %q", said.Event, said.Reason)
		}
		return err
	})
}

func TestJobsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.createGlidein(w.newGlidein()), w.createGlidein(w.newGlidein())
	w.attempt(a, ended(corral.OutcomeLost))
	w.attempt(b)
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"})
		return err
	})
	for _, c := range []struct {
		name   string
		filter store.JobFilter
		want   int
	}{
		{"zero", store.JobFilter{}, 3},
		{"live", store.JobFilter{Live: true}, 2},
		{"live pilots", store.JobFilter{Live: true, Kind: corral.PilotJob}, 1},
		{"glidein", store.JobFilter{Glidein: a.ID}, 1},
		{"site and kind", store.JobFilter{Site: w.site.ID, Kind: corral.SetupJob}, 1},
		{"other site", store.JobFilter{Site: 99}, 0},
	} {
		w.view(func(tx *store.Tx) error {
			list, err := tx.Jobs(c.filter)
			if len(list) != c.want {
				t.Errorf("%s: %d jobs, want %d", c.name, len(list), c.want)
			}
			return err
		})
	}
}

// A circuit breaker considers only attempts whose outcomes are evidence about the site, regardless of how many others
// end.
func TestHoldConsidersOnlyEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	passing := ended(corral.OutcomeFailed)
	passing.Transient = true
	for i, events := range [][]corral.JobEvent{
		{ended(corral.OutcomeFailed)}, {passing}, {submitted, ended(corral.OutcomeFailed)},
		{submitted, ended(corral.OutcomeExpired)}, {submitted, ended(corral.OutcomeIdle)}, {submitted, ended(corral.OutcomeDrained)}, {submitted, ended(corral.OutcomeRemoved)},
		{submitted, ended(corral.OutcomePreempted)}, {submitted, ended(corral.OutcomeLost)}, {submitted, ended(corral.OutcomeDuplicate)},
	} {
		g := w.newGlidein()
		g.Resubmit = resubmit.Policy{Mode: resubmit.Forever, Retries: 99}
		w.write(func(tx *store.Tx) error {
			s, err := readySite(tx, fmt.Sprint("site-", i))
			g.Site = s.ID
			return err
		})
		end := func(n int, events ...corral.JobEvent) (j corral.Job) {
			for range n {
				j = w.attempt(w.createGlidein(g), events...)
			}
			return j
		}
		end(corral.HoldAfter, submitted, ended(corral.OutcomeFailed))
		j := end(corral.HoldHistory, events...)
		w.view(func(tx *store.Tx) error {
			told, err := tx.Told(g.Site)
			held := corral.NewHold(told)
			if seen := !strings.HasPrefix(held.Why, "the last 3 attempts at the site came to nothing"); seen != j.Tells() {
				t.Errorf("after %+v: %+v, want that it is seen = %t", j, held, j.Tells())
			}
			return err
		})
	}
}

func TestAttemptsOverSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	over := w.attempt(w.createGlidein(w.newGlidein()), ended(corral.OutcomeFailed)) // its glidein has also ended
	w.attempt(w.createGlidein(w.newGlidein()))
	for since, want := range map[time.Time]int{over.CreatedAt: 1, over.CreatedAt.Add(time.Millisecond): 0} {
		w.view(func(tx *store.Tx) error {
			got, err := tx.AttemptsOverSince(w.site.ID, since)
			if len(got) != want || want > 0 && got[0].ID != over.ID {
				t.Errorf("since %s: %+v, want %d", since, got, want)
			}
			return err
		})
	}
}
