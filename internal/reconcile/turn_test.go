package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// wanting is a glidein that wants an attempt, asked for so many seconds after t0.
func wanting(id corral.GlideinID, after int, attempts ...corral.Job) corral.Glidein {
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever, Retries: 9}, attempts...)
	g.ID, g.CreatedAt = id, t0.Add(time.Duration(after)*time.Second)
	return g
}

// turnsOf are the glideins that submit now, in order, and what the others say that they lack.
func turnsOf(now time.Time, w World) (submit []corral.GlideinID, says map[corral.GlideinID]string) {
	says = map[corral.GlideinID]string{}
	for _, a := range Decide(now, w) {
		switch a := a.(type) {
		case Submit:
			submit = append(submit, a.Glidein)
		case Settle:
			says[a.Glidein] = a.Lack.Why
		}
	}
	return submit, says
}

func TestTurns(t *testing.T) {
	t.Parallel()
	ended := func(after int, o corral.Outcome) corral.Job {
		j := over(1, o)
		j.EndedAt = t0.Add(time.Duration(after) * time.Second)
		return j
	}
	lapping := wanting(1, 0, alive(1, corral.JobRunning))
	lapping.Overlap = corral.Seconds(20 * time.Second)
	planned := wanting(2, 0)
	planned.NotBefore = t0.Add(30 * time.Second)
	site := func(queued, running int) corral.Site {
		return corral.Site{Name: "hpc", State: corral.SiteReady, Limits: corral.SiteLimits{MaxQueued: queued, MaxRunning: running}}
	}
	const queue, run = "limit max_queued of site hpc: ", "limit max_running of site hpc: "
	for _, tt := range []struct {
		name     string
		site     corral.Site
		glideins []corral.Glidein
		submit   []corral.GlideinID
		says     map[corral.GlideinID]string
	}{
		{"no limit: all, the oldest first", site(0, 0), []corral.Glidein{wanting(1, 2), wanting(2, 1), wanting(3, 3)}, []corral.GlideinID{2, 1, 3}, nil},
		{"as old as each other: by id", site(0, 0), []corral.Glidein{wanting(1, 0), wanting(2, 0)}, []corral.GlideinID{1, 2}, nil},
		{"room for one: the oldest", site(1, 0), []corral.Glidein{wanting(1, 2), wanting(2, 1)}, []corral.GlideinID{2}, map[corral.GlideinID]string{1: queue + "1 of 1 attempts wait"}},
		{"an attempt that runs does not wait", site(1, 0), []corral.Glidein{wanting(1, 0, alive(1, corral.JobRunning)), wanting(2, 1)}, []corral.GlideinID{2}, nil},
		{"one that is not answered does", site(1, 0), []corral.Glidein{wanting(1, 0, alive(1, corral.JobSubmitted)), wanting(2, 1)}, nil, map[corral.GlideinID]string{2: queue + "1 of 1 attempts wait"}},
		{"those that wait may start", site(0, 2), []corral.Glidein{wanting(1, 0, alive(1, corral.JobRunning)), wanting(2, 0, alive(1, corral.JobQueued)), wanting(3, 0)}, nil, map[corral.GlideinID]string{3: run + "2 of 2 attempts wait or run"}},
		{"resubmitted for ever, it waits for those who have waited longer", site(1, 0), []corral.Glidein{wanting(1, 0, ended(50, corral.OutcomeExpired)), wanting(2, 10)}, []corral.GlideinID{2}, map[corral.GlideinID]string{1: queue + "1 of 1 attempts wait"}},
		{"a planned start counts from its time", site(1, 0), []corral.Glidein{planned, wanting(3, 20)}, []corral.GlideinID{3}, map[corral.GlideinID]string{2: queue + "1 of 1 attempts wait"}},
		{"an overlap takes its turn like others", site(0, 2), []corral.Glidein{lapping, wanting(2, 45)}, []corral.GlideinID{1}, map[corral.GlideinID]string{2: run + "2 of 2 attempts wait or run"}},
	} {
		submit, says := turnsOf(t0.Add(time.Minute), World{Site: tt.site, Glideins: tt.glideins})
		if tt.says == nil {
			tt.says = map[corral.GlideinID]string{}
		}
		if diff := cmp.Diff(tt.submit, submit) + cmp.Diff(tt.says, says); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// After a hold one attempt shows whether the site works again; the others wait for it.
func TestCircuitBreakerHalfOpen(t *testing.T) {
	t.Parallel()
	since, until := t0, t0.Add(time.Minute)
	held := corral.Hold{Since: since, Until: until, Why: "the last 3 attempts at the site came to nothing"}
	trial := func(after time.Duration, workers int, s corral.JobState) corral.Glidein {
		a := alive(1, s)
		a.CreatedAt, a.StartedAt, a.Workers = t0.Add(after), t0.Add(after), workers
		return wanting(1, 0, a)
	}
	for _, tt := range []struct {
		name   string
		first  corral.Glidein
		after  time.Duration
		submit []corral.GlideinID
		due    time.Duration // of what Due says; 0: never
	}{
		{"open", wanting(1, 0), time.Minute - 1, nil, time.Minute},
		{"half open: one", wanting(1, 0), time.Minute, []corral.GlideinID{1}, 11 * time.Minute},
		{"half open: it is on its way", trial(time.Minute, 0, corral.JobQueued), 2 * time.Minute, nil, 11 * time.Minute},
		{"half open: it runs, and nothing has registered", trial(time.Minute, 0, corral.JobRunning), 2 * time.Minute, nil, 11 * time.Minute},
		{"closed: workers have registered", trial(time.Minute, 1, corral.JobRunning), 2 * time.Minute, []corral.GlideinID{2, 3}, 0},
		{"those of before say nothing", trial(-time.Minute, 1, corral.JobRunning), 2 * time.Minute, []corral.GlideinID{2}, 12 * time.Minute},
		{"the trial is stuck in the queue: another one", trial(time.Minute, 0, corral.JobQueued), 11 * time.Minute, []corral.GlideinID{2}, 21 * time.Minute},
	} {
		w := World{Site: corral.Site{State: corral.SiteReady}, Held: held, Glideins: []corral.Glidein{tt.first, wanting(2, 1), wanting(3, 1)}}
		now := t0.Add(tt.after)
		submit, says := turnsOf(now, w)
		if !slices.Equal(submit, tt.submit) {
			t.Errorf("%s: %v submit, want %v", tt.name, submit, tt.submit)
		}
		if now.After(until) && len(submit) < 2 && !strings.HasPrefix(says[3], "limit circuit breaker: the last 3") {
			t.Errorf("%s: who waits says %q", tt.name, says[3])
		}
		want := t0.Add(tt.after + tt.due - tt.after)
		if got := takeTurns(now, w).next; now.After(until) && tt.due != 0 && !got.Equal(want) || tt.due == 0 && !got.IsZero() {
			t.Errorf("%s: others have their turn at %s, want %s", tt.name, got, want)
		}
	}
}

// Many glideins at a site with limits, over a while: attempts start and end as they like. Never is a limit exceeded, nor
// the pace of submissions; who wants an attempt gets it before one that has waited less; and who slept until Due missed nothing.
func TestTurnsOverTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := World{Site: corral.Site{Name: "hpc", State: corral.SiteReady, Limits: corral.SiteLimits{
			MaxQueued: rapid.IntRange(0, 30).Draw(t, "max queued"), MaxRunning: rapid.IntRange(0, 40).Draw(t, "max running")}}}
		for i := range rapid.IntRange(1, 60).Draw(t, "glideins") {
			g := wanting(corral.GlideinID(i+1), rapid.IntRange(-5, 5).Draw(t, "created"))
			g.Walltime = corral.Seconds(time.Hour)
			w.Glideins = append(w.Glideins, g)
		}
		now := t0.Add(10 * time.Second)
		var asked []time.Time
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			submit, _ := turnsOf(now, w)
			for _, id := range submit {
				asked = append(asked, now)
				g := &w.Glideins[id-1]
				g.Attempts = append(g.Attempts, corral.Job{ID: corral.JobID(len(asked)), Kind: corral.PilotJob, Glidein: id, Number: len(g.Attempts) + 1, State: corral.JobNew, CreatedAt: now})
			}
			checkLoad(t, w)
			checkPace(t, asked)
			if again, _ := turnsOf(now, w); len(again) > 0 {
				t.Fatalf("step %d: deciding again at the same time submits %v more", step, again)
			}
			due := takeTurns(now, w).next
			later := now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "later")))
			if submit, _ := turnsOf(later, w); (due.IsZero() || later.Before(due)) && len(submit) > 0 {
				t.Fatalf("step %d: %v are submitted before they are due", step, submit)
			}
			now = later
			live(t, &w, now)
		}
	})
}

// live lets some attempts start and others end.
func live(t *rapid.T, w *World, now time.Time) {
	for i := range w.Glideins {
		for k := range w.Glideins[i].Attempts {
			a := &w.Glideins[i].Attempts[k]
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case a.State == corral.JobNew && what == 1:
				a.State, a.StartedAt = corral.JobRunning, now
			case a.Live() && what == 2:
				a.State, a.Outcome, a.EndedAt = corral.JobEnded, corral.OutcomeExpired, now
				w.Over = append(w.Over, *a)
			}
		}
	}
}

func checkLoad(t *rapid.T, w World) {
	var l corral.Load
	for _, a := range w.attempts() {
		l = l.Add(a)
	}
	if m := w.Site.Limits; m.MaxQueued > 0 && l.Queued > m.MaxQueued || m.MaxRunning > 0 && l.Queued+l.Running > m.MaxRunning {
		t.Fatalf("%+v is above %+v", l, m)
	}
}

// checkPace looks at every stretch of time.
func checkPace(t *rapid.T, asked []time.Time) {
	for i := range asked {
		n, stretch := len(asked)-i, asked[len(asked)-1].Sub(asked[i])
		if stretch < SubmitWindow && n > SubmitMost {
			t.Fatalf("%d attempts were asked for in %s, want at most %d", n, stretch, SubmitMost)
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	w := World{Site: corral.Site{State: corral.SiteReady}}
	for i := range 200 {
		w.Glideins = append(w.Glideins, wanting(corral.GlideinID(i+1), 0))
	}
	begin := t0.Add(time.Minute)
	now := begin
	for n := 0; n < 200; {
		submit, says := turnsOf(now, w)
		if len(submit) == 0 || len(submit) > SubmitMost || len(says) > 0 {
			t.Fatalf("at %s %v are submitted, the others say %v", now, submit, says)
		}
		for _, id := range submit {
			a := alive(1, corral.JobNew)
			a.CreatedAt = now
			w.Glideins[id-1].Attempts = []corral.Job{a}
			w.Glideins[id-1].State, w.Glideins[id-1].Reason = w.Glideins[id-1].Derive(corral.SiteReady, corral.Hold{}, corral.Lack{}, now)
		}
		if n += len(submit); n < 200 {
			now = Due(now, w)
		}
	}
	if took, want := now.Sub(begin), (200/SubmitMost-1)*SubmitWindow; took != want {
		t.Errorf("200 attempts were asked for in %s, want %s", took, want)
	}
}

// What was refused, and its glidein failed for it, counts as well: a site is not asked faster for its answers.
func TestPaceOfWhatIsRefused(t *testing.T) {
	t.Parallel()
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{wanting(1, 0)}, Over: slices.Repeat([]corral.Job{{CreatedAt: t0, EndedAt: t0}}, SubmitMost)}
	if submit, _ := turnsOf(t0.Add(SubmitWindow-1), w); len(submit) > 0 {
		t.Errorf("%v are submitted", submit)
	}
	if submit, _ := turnsOf(t0.Add(SubmitWindow), w); len(submit) != 1 {
		t.Errorf("%v are submitted, want one", submit)
	}
}
