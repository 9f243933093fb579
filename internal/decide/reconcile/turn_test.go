package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// wanting returns a glidein that wants an attempt and was requested the given number of seconds after t0.
func wanting(id corral.GlideinID, after int, attempts ...corral.Job) corral.Glidein {
	g := glideinWith(resubmit.Policy{Mode: resubmit.Forever, Retries: 9}, attempts...)
	g.ID, g.CreatedAt = id, t0.Add(time.Duration(after)*time.Second)
	return g
}

// turnsOf returns the glideins that submit now, in order, and the reasons why the others wait.
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
		{"resubmitted forever, it waits for those who have waited longer", site(1, 0), []corral.Glidein{wanting(1, 0, ended(50, corral.OutcomeExpired)), wanting(2, 10)}, []corral.GlideinID{2}, map[corral.GlideinID]string{1: queue + "1 of 1 attempts wait"}},
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

// After a hold one attempt tests whether the site works again, and the others wait for the result.
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
		due    time.Duration // result of Due; 0: never
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
		if got := takeTurns(now, &w).next; now.After(until) && tt.due != 0 && !got.Equal(want) || tt.due == 0 && !got.IsZero() {
			t.Errorf("%s: others have their turn at %s, want %s", tt.name, got, want)
		}
	}
}

// If many glideins want an attempt at once, the attempts are submitted at a pace that a site can tolerate.
func TestPace(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{})
	for range 200 {
		r.must(CreateGlidein{Glidein: forever()})
	}
	for n := 0; n < 200; r.now = Due(r.now, r.World) {
		submit, says := turnsOf(r.now, r.World)
		if len(submit) == 0 || len(submit) > SubmitMost || len(says) > 0 {
			t.Fatalf("at %s %v are submitted, the others say %v", r.now, submit, says)
		}
		for _, id := range submit {
			r.must(Submit{Kind: corral.PilotJob, Glidein: id})
		}
		if n += len(submit); n == 200 {
			break
		}
	}
	if took, want := r.now.Sub(t0), (200/SubmitMost-1)*SubmitWindow; took != want {
		t.Errorf("200 attempts were asked for in %s, want %s", took, want)
	}
}

// A refused submission counts even if its glidein failed because of it: a site's quick answers do not increase the
// pace.
func TestPaceOfRefusals(t *testing.T) {
	t.Parallel()
	w := World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{wanting(1, 0)}, Over: slices.Repeat([]corral.Job{{CreatedAt: t0, EndedAt: t0}}, SubmitMost)}
	if submit, _ := turnsOf(t0.Add(SubmitWindow-1), w); len(submit) > 0 {
		t.Errorf("%v are submitted", submit)
	}
	if submit, _ := turnsOf(t0.Add(SubmitWindow), w); len(submit) != 1 {
		t.Errorf("%v are submitted, want one", submit)
	}
}

// Attempts that were requested a moment ago leave less room for others, until SubmitWindow has passed.
func TestPaceLeavesTheRest(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]int{0: 10, 5: 10, 12: 8, 19: 1, 20: 0, 25: 0} {
		w := World{Site: corral.Site{State: corral.SiteReady}, Over: slices.Repeat([]corral.Job{{CreatedAt: t0, EndedAt: t0}}, asked)}
		for id := range 10 {
			w.Glideins = append(w.Glideins, wanting(corral.GlideinID(id+1), 0))
		}
		if submit, _ := turnsOf(t0.Add(SubmitWindow-1), w); len(submit) != want {
			t.Errorf("after %d attempts %d are submitted, want %d", asked, len(submit), want)
		}
	}
}
