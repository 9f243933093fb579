package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/resubmit"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func glideinWith(policy resubmit.Policy, attempts ...corral.Job) corral.Glidein {
	g := corral.Glidein{ID: 7,
		Shape:    corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Minute)},
		Resubmit: policy,
		State:    corral.GlideinWaiting, Reason: "to be submitted", Attempts: attempts}
	g.State, g.Reason = g.Derive(corral.SiteReady, corral.Hold{}, corral.Lack{}, t0)
	return g
}

func over(n int, o corral.Outcome) corral.Job {
	return corral.Job{ID: corral.JobID(n), Kind: corral.PilotJob, Glidein: 7, Number: n, State: corral.JobEnded, Outcome: o, EndedAt: t0}
}

func alive(n int, s corral.JobState) corral.Job {
	return corral.Job{ID: corral.JobID(n), Kind: corral.PilotJob, Glidein: 7, Number: n, State: s, CreatedAt: t0, StartedAt: t0}
}

func siteJobOver(kind corral.JobKind, n int, o corral.Outcome, transient bool) corral.Job {
	return corral.Job{ID: corral.JobID(n), Kind: kind, Number: n, State: corral.JobEnded, Outcome: o, Transient: transient, SubmittedAt: t0, EndedAt: t0}
}

// kinds returns the names of actions for the tables, without their reasons.
func kinds(actions []Action) []string {
	names := []string{}
	for _, a := range actions {
		switch a := a.(type) {
		case Submit:
			if a.Package != "" {
				names = append(names, "stage "+a.Package)
				continue
			}
			names = append(names, "submit "+string(a.Kind))
		case Resume:
			names = append(names, "resume")
		case Renew:
			names = append(names, "renew")
		case Drain:
			names = append(names, "drain")
		case Cancel:
			names = append(names, "cancel")
		case AskGlidein:
			names = append(names, "ask "+string(a.Ask))
		case Retime:
			names = append(names, "retime")
		case Settle:
			names = append(names, "settle")
		case MoveSite:
			names = append(names, string(a.Move))
		case Sweep:
			names = append(names, "sweep")
		}
	}
	return names
}

func TestDecideSite(t *testing.T) {
	t.Parallel()
	setup := func(o corral.Outcome, transient bool) corral.Job {
		return siteJobOver(corral.SetupJob, 1, o, transient)
	}
	ahead := func(d time.Duration) corral.Job {
		j := setup(corral.OutcomeFailed, true)
		j.EndedAt = t0.Add(d)
		return j
	}
	tests := []struct {
		name  string
		state corral.SiteState
		jobs  []corral.Job
		after time.Duration
		want  []string
	}{
		{"new: the setup job is submitted", corral.SiteNew, nil, 0, []string{"submit setup"}},
		{"crash between intent and submission", corral.SiteStaging, []corral.Job{{Kind: corral.SetupJob, Number: 1, State: corral.JobNew}}, 0, []string{"resume"}},
		{"setup running", corral.SiteStaging, []corral.Job{{Kind: corral.SetupJob, State: corral.JobRunning}}, 0, []string{}},
		{"setup done", corral.SiteStaging, []corral.Job{setup(corral.OutcomeDone, false)}, 0, []string{"staged"}},
		{"setup failed for good", corral.SiteStaging, []corral.Job{setup(corral.OutcomeFailed, false)}, 0, []string{"fail"}},
		{"setup failed, may pass: too early", corral.SiteStaging, []corral.Job{setup(corral.OutcomeFailed, true)}, 0, []string{}},
		{"setup failed, may pass: later", corral.SiteStaging, []corral.Job{setup(corral.OutcomeFailed, true)}, time.Minute, []string{"submit setup"}},
		{"setup failed, may pass: in 58 s, by a clock that was set back", corral.SiteStaging, []corral.Job{ahead(58 * time.Second)}, 0, []string{}},
		{"setup failed, may pass: later than any back-off, by a clock that was set back", corral.SiteStaging, []corral.Job{ahead(59 * time.Second)}, 0, []string{"submit setup"}},
		{"setup failed three times", corral.SiteStaging, []corral.Job{setup(corral.OutcomeFailed, true), setup(corral.OutcomeLost, false), setup(corral.OutcomeFailed, true)}, time.Minute, []string{"fail"}},
		{"ready", corral.SiteReady, []corral.Job{setup(corral.OutcomeDone, false)}, 0, []string{}},
		{"exiting while setup runs", corral.SiteExiting, []corral.Job{{Kind: corral.SetupJob, State: corral.JobRunning}}, 0, []string{"cancel"}},
		{"exiting, empty", corral.SiteExiting, []corral.Job{setup(corral.OutcomeDone, false)}, 0, []string{"submit cleanup"}},
		{"exiting, nothing installed", corral.SiteExiting, nil, 0, []string{"emptied"}},
		{"removing, nothing installed", corral.SiteRemoving, nil, 0, []string{"sweep"}},
		{"cleanup done", corral.SiteRemoving, []corral.Job{siteJobOver(corral.CleanupJob, 1, corral.OutcomeDone, false)}, 0, []string{"sweep"}},
		{"removed again after a failed removal", corral.SiteRemoving, []corral.Job{siteJobOver(corral.CleanupJob, 1, corral.OutcomeFailed, false)}, 0, []string{"fail"}},
		{"cleanup refused: there may be no room for it", corral.SiteRemoving, []corral.Job{{Kind: corral.CleanupJob, Number: 1, State: corral.JobEnded, Outcome: corral.OutcomeFailed, EndedAt: t0}}, 0, []string{"sweep"}},
		{"failed", corral.SiteFailed, []corral.Job{{Kind: corral.SetupJob, State: corral.JobRunning}}, 0, []string{"cancel"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			site := corral.Site{State: tt.state}
			if len(tt.jobs) > 0 {
				site.PackageDigest = "sha256:…" // known before the first job
			}
			got := kinds(Decide(t0.Add(tt.after), World{Site: site, Jobs: tt.jobs}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideGlidein(t *testing.T) {
	t.Parallel()
	never, twice := resubmit.Policy{Mode: resubmit.Never}, resubmit.Policy{Mode: resubmit.Times, Limit: 2}
	forever := resubmit.Policy{Mode: resubmit.Forever}
	asked := func(g corral.Glidein, ask corral.Ask) corral.Glidein { g.Asked = ask; return g }
	lap := func(g corral.Glidein) corral.Glidein { g.Overlap = corral.Seconds(20 * time.Second); return g }
	leased := func(g corral.Glidein) corral.Glidein { g.Attempts[len(g.Attempts)-1].LeaseHolder = "pilot"; return g }
	working := func(g corral.Glidein) corral.Glidein { g.Attempts[0].Workers = 1; return g }
	exp := over(1, corral.OutcomeExpired)
	later := func(j corral.Job) corral.Job { j.EndedAt = t0.Add(44 * time.Second); return j }
	forever3 := resubmit.Policy{Mode: resubmit.Forever, Retries: 3}
	tests := []struct {
		name  string
		g     corral.Glidein
		after time.Duration
		want  []string
	}{
		{"first attempt", glideinWith(never), 0, []string{"submit pilot"}},
		{"one is alive", glideinWith(forever, alive(1, corral.JobRunning)), 0, []string{}},
		{"unanswered submission", glideinWith(never, alive(1, corral.JobNew)), 0, []string{"resume"}},
		{"expired, never", glideinWith(never, exp), 0, []string{}},
		{"expired, twice", glideinWith(twice, exp), 0, []string{"submit pilot"}},
		{"expired three times, twice", glideinWith(twice, exp, over(2, corral.OutcomeExpired), over(3, corral.OutcomeExpired)), 0, []string{}},
		{"idle, forever", glideinWith(forever, over(1, corral.OutcomeIdle)), 0, []string{}},
		{"lost, one retry: back-off", glideinWith(resubmit.Policy{Retries: 1}, over(1, corral.OutcomeLost)), 0, []string{}},
		{"lost, one retry: later", glideinWith(resubmit.Policy{Retries: 1}, over(1, corral.OutcomeLost)), time.Minute, []string{"submit pilot"}},
		{"a duplicate beside the real one", glideinWith(never, alive(1, corral.JobRunning), over(2, corral.OutcomeDuplicate)), 0, []string{}},
		{"drain, running", asked(leased(glideinWith(never, alive(1, corral.JobRunning))), corral.AskDrain), 0, []string{"drain", "settle"}},
		{"drain, running, but no pilot came", asked(glideinWith(never, alive(1, corral.JobRunning)), corral.AskDrain), 0, []string{"cancel", "settle"}},
		{"drain, running, its pilot has no link", asked(working(glideinWith(never, alive(1, corral.JobRunning))), corral.AskDrain), 0, []string{"cancel", "settle"}},
		{"drain, queued", asked(glideinWith(never, alive(1, corral.JobQueued)), corral.AskDrain), 0, []string{"cancel", "settle"}},
		{"cancel", asked(glideinWith(never, alive(1, corral.JobRunning)), corral.AskCancel), 0, []string{"cancel", "settle"}},
		{"overlap: not yet", lap(glideinWith(forever, alive(1, corral.JobRunning))), 30 * time.Second, []string{}},
		{"overlap: near the end", lap(glideinWith(forever, alive(1, corral.JobRunning))), 45 * time.Second, []string{"submit pilot"}},
		{"overlap: only one more", lap(glideinWith(forever, alive(1, corral.JobRunning), alive(2, corral.JobQueued))), 45 * time.Second, []string{}},
		{"overlap: the next one was lost, back-off", lap(glideinWith(forever3, alive(1, corral.JobRunning), later(over(2, corral.OutcomeLost)))), 45 * time.Second, []string{}},
		{"overlap: the next one was lost, later", lap(glideinWith(forever3, alive(1, corral.JobRunning), later(over(2, corral.OutcomeLost)))), 55 * time.Second, []string{"submit pilot"}},
		{"overlap: the next one was lost, no retries", lap(glideinWith(forever, alive(1, corral.JobRunning), later(over(2, corral.OutcomeLost)))), 55 * time.Second, []string{}},
		{"overlap: the next one failed for good", lap(glideinWith(forever3, alive(1, corral.JobRunning), later(over(2, corral.OutcomeFailed)))), 55 * time.Second, []string{}},
		{"overlap: the next one was idle", lap(glideinWith(forever3, alive(1, corral.JobRunning), later(over(2, corral.OutcomeIdle)))), 55 * time.Second, []string{}},
		{"overlap: the last of two", lap(glideinWith(twice, exp, over(2, corral.OutcomeExpired), alive(3, corral.JobRunning))), 45 * time.Second, []string{}},
		{"overlap: nothing follows", lap(glideinWith(never, alive(1, corral.JobRunning))), 45 * time.Second, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := kinds(Decide(t0.Add(tt.after), World{Site: corral.Site{State: corral.SiteReady}, Glideins: []corral.Glidein{tt.g}}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Decide (-want +got):\n%s", diff)
			}
		})
	}
}

// A site that is being removed is cleaned up once none of its glideins has an attempt.
func TestDecideExitingWaitsForGlideins(t *testing.T) {
	t.Parallel()
	cancelled := glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))
	cancelled.Asked, cancelled.State, cancelled.Reason = corral.AskCancel, corral.GlideinRemoving, "asked to cancel"
	deleted := glideinWith(resubmit.Policy{}, over(1, corral.OutcomeRemoved))
	deleted.Asked, deleted.State, deleted.Reason = corral.AskCancel, corral.GlideinDeleted, "removed"
	for _, tt := range []struct {
		name     string
		glideins []corral.Glidein
		want     []string
	}{
		{"one works", []corral.Glidein{deleted, glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))}, []string{"ask cancel"}},
		{"one is being cancelled", []corral.Glidein{cancelled, deleted}, []string{"cancel"}},
		{"all have left", []corral.Glidein{deleted, deleted}, []string{"submit cleanup"}},
	} {
		w := World{Site: corral.Site{State: corral.SiteExiting, PackageDigest: digest}, Glideins: tt.glideins}
		if diff := cmp.Diff(tt.want, kinds(Decide(t0, w))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// After a forced removal or a failure, no job is left running at the site.
func TestDecideGoneSiteCancelsAttempts(t *testing.T) {
	t.Parallel()
	for _, state := range []corral.SiteState{corral.SiteFailed, corral.SiteDeleted} {
		g := glideinWith(resubmit.Policy{}, alive(1, corral.JobRunning))
		got := kinds(Decide(t0, World{Site: corral.Site{State: state}, Glideins: []corral.Glidein{g}}))
		if diff := cmp.Diff([]string{"cancel"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
}

// An attempt's end determines whether its node is blamed.
func TestEndNamesNodes(t *testing.T) {
	t.Parallel()
	lost := []corral.LostHost{{Host: 1, Node: "n2", Why: "disk"}}
	nameless := []corral.LostHost{{Host: 1, Why: "disk"}}
	silent := []corral.LostHost{{Node: "n1", Why: "it left no report"}}
	vanished := []corral.LostHost{{Node: "n1", Why: "its processes disappeared"}}
	reported := &Report{Outcome: corral.OutcomeDrained, Lost: lost}
	for name, c := range map[string]struct {
		s    Sighting
		late time.Duration
		want []corral.LostHost
	}{
		"it says which":                {Sighting{Report: reported, Node: "n1"}, 0, lost},
		"corrald was just there":       {Sighting{Report: reported}, 10 * time.Minute, lost},
		"corrald was away at that":     {Sighting{Report: reported}, 10*time.Minute + time.Second, nameless},
		"it could not say anything":    {Sighting{Node: "n1"}, 0, silent},
		"not even how it ended":        {Sighting{Node: "n1", Killed: ByDisappeared}, 0, vanished},
		"it was ended by its walltime": {Sighting{Node: "n1", Killed: ByWalltime}, 0, nil},
		"it was cancelled":             {Sighting{Node: "n1", Killed: ByCancel}, 0, nil},
		"nobody knows where it was":    {Sighting{}, 0, nil},
	} {
		c.s.Known, c.s.Phase, c.s.EndedAt = true, Ended, t0
		events := Events(corral.Job{Kind: corral.PilotJob, State: corral.JobRunning}, c.s, t0.Add(c.late))
		if diff := cmp.Diff(c.want, events[len(events)-1].Lost); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	seven := 7
	later := t0.Add(time.Minute)
	report := func(o corral.Outcome) *Report { return &Report{Outcome: o, Reason: "its own words"} }
	end := Sighting{Known: true, ID: "12", Phase: Ended, StartedAt: t0, EndedAt: later, Exit: &seven}
	with := func(s Sighting, f func(*Sighting)) Sighting { f(&s); return s }
	tests := []struct {
		name    string
		state   corral.JobState
		asked   corral.Ask
		s       Sighting
		moves   []corral.JobMove
		outcome corral.Outcome
	}{
		{"unknown intent is Decide's", corral.JobNew, "", Sighting{}, nil, ""},
		{"queued", corral.JobSubmitted, "", Sighting{Known: true, Phase: Queued}, []corral.JobMove{corral.JobQueue}, ""},
		{"still queued", corral.JobQueued, "", Sighting{Known: true, Phase: Queued}, nil, ""},
		{"adopted while running", corral.JobNew, "", Sighting{Known: true, Phase: Running, StartedAt: t0}, []corral.JobMove{corral.JobStart}, ""},
		{"still running", corral.JobRunning, "", Sighting{Known: true, Phase: Running}, nil, ""},
		{"lived between two polls", corral.JobSubmitted, "", with(end, func(s *Sighting) { s.Report = report(corral.OutcomeIdle) }), []corral.JobMove{corral.JobStart, corral.JobEnd}, corral.OutcomeIdle},
		{"expired by its own word", corral.JobRunning, "", with(end, func(s *Sighting) { s.Report = report(corral.OutcomeExpired) }), []corral.JobMove{corral.JobEnd}, corral.OutcomeExpired},
		{"killed at the walltime", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = ByWalltime }), []corral.JobMove{corral.JobEnd}, corral.OutcomeExpired},
		{"cancelled, it says preempted", corral.JobRunning, corral.AskCancel, with(end, func(s *Sighting) { s.Report = report(corral.OutcomePreempted) }), []corral.JobMove{corral.JobEnd}, corral.OutcomeRemoved},
		{"disappeared", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = ByDisappeared }), []corral.JobMove{corral.JobEnd}, corral.OutcomeLost},
		{"its node failed", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = ByNode }), []corral.JobMove{corral.JobEnd}, corral.OutcomeLost},
		{"made room", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = ByPreemption }), []corral.JobMove{corral.JobEnd}, corral.OutcomePreempted},
		{"ended by the site", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = BySite }), []corral.JobMove{corral.JobEnd}, corral.OutcomePreempted},
		{"used too much memory", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed = ByMemory }), []corral.JobMove{corral.JobEnd}, corral.OutcomeFailed},
		{"killed at the walltime, of which it saw a signal", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed, s.Report = ByWalltime, report(corral.OutcomePreempted) }), []corral.JobMove{corral.JobEnd}, corral.OutcomeExpired},
		{"its node failed, of which it saw a signal", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed, s.Report = ByNode, report(corral.OutcomePreempted) }), []corral.JobMove{corral.JobEnd}, corral.OutcomeLost},
		{"somebody ended it, of which it saw a signal", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed, s.Report = BySite, report(corral.OutcomePreempted) }), []corral.JobMove{corral.JobEnd}, corral.OutcomePreempted},
		{"had nothing to do, and was killed while it left", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed, s.Report = ByWalltime, report(corral.OutcomeIdle) }), []corral.JobMove{corral.JobEnd}, corral.OutcomeIdle},
		{"saw a signal, of which nobody knows", corral.JobRunning, "", with(end, func(s *Sighting) { s.Killed, s.Report = ByDisappeared, report(corral.OutcomePreempted) }), []corral.JobMove{corral.JobEnd}, corral.OutcomePreempted},
		{"no report", corral.JobRunning, "", end, []corral.JobMove{corral.JobEnd}, corral.OutcomeFailed},
		{"missing, may be a delay", corral.JobRunning, "", Sighting{Missing: t0, Visibility: time.Hour}, nil, ""},
		{"missing, asked to go: may be a delay", corral.JobNew, corral.AskCancel, Sighting{Missing: t0, Visibility: time.Hour}, nil, ""},
		{"missing for good, asked to go", corral.JobNew, corral.AskCancel, Sighting{Missing: t0, Visibility: time.Second}, []corral.JobMove{corral.JobEnd}, corral.OutcomeRemoved},
		{"missing for good", corral.JobRunning, "", Sighting{Missing: t0, Visibility: time.Second}, []corral.JobMove{corral.JobEnd}, corral.OutcomeLost},
		{"ended long ago", corral.JobEnded, "", end, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := corral.Job{Kind: corral.PilotJob, Tag: "t", State: tt.state, Asked: tt.asked}
			var moves []corral.JobMove
			for _, e := range Events(j, tt.s, later) {
				var err error
				if j, _, err = j.Apply(e, later); err != nil {
					t.Fatalf("Apply(%v): %v", e, err)
				}
				moves = append(moves, e.Move)
				// A node that failed may still run the job's processes, and so may a site that has forgotten the job.
				if want := e.Move == corral.JobEnd && tt.s.Known && tt.s.Killed != ByNode; e.Gone != want {
					t.Errorf("%s: gone %v, want %v", e.Move, e.Gone, want)
				}
			}
			if diff := cmp.Diff(tt.moves, moves); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
			if tt.outcome != "" && j.Outcome != tt.outcome {
				t.Errorf("outcome = %s (%s), want %s", j.Outcome, j.Reason, tt.outcome)
			}
		})
	}
}

// A node is blamed if it failed, according to the batch system, or if a pilot on it could not even report why it
// failed. The node is not blamed for the effects of tasks, or for a signal.
func TestBlamedNode(t *testing.T) {
	t.Parallel()
	preempted := &Report{Outcome: corral.OutcomePreempted, Reason: "terminated signal received"}
	for _, tt := range []struct {
		name   string
		killed Killed
		says   string
		report *Report
		node   string
		why    string
	}{
		{"it failed", ByNode, "NODE_FAIL", nil, "n1", "one of its nodes failed (NODE_FAIL)"},
		{"it failed, and the pilot saw a signal", ByNode, "NODE_FAIL", preempted, "n1", "one of its nodes failed (NODE_FAIL)"},
		{"the pilot disappeared", ByDisappeared, "", nil, "n1", "its processes disappeared"},
		{"no report", "", "", nil, "n1", "it left no report"},
		{"too much memory", ByMemory, "OUT_OF_MEMORY", nil, "", ""},
		{"its time was over", ByWalltime, "TIMEOUT", preempted, "", ""},
		{"others needed the room", ByPreemption, "PREEMPTED", preempted, "", ""},
		{"somebody cancelled it", BySite, "CANCELLED", preempted, "", ""},
	} {
		s := Sighting{Known: true, Phase: Ended, StartedAt: t0, EndedAt: t0, Killed: tt.killed, Says: tt.says, Report: tt.report, Node: "n1"}
		events := Events(corral.Job{Kind: corral.PilotJob, State: corral.JobRunning}, s, t0)
		e := events[len(events)-1]
		var want []corral.LostHost
		if tt.node != "" {
			want = []corral.LostHost{{Node: tt.node, Why: tt.why}}
		}
		if diff := cmp.Diff(want, e.Lost, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if tt.says != "" && !strings.Contains(e.Reason, "("+tt.says+")") {
			t.Errorf("%s: %q does not say %s", tt.name, e.Reason, tt.says)
		}
	}
}

// Whatever the history of a glidein, at most one attempt is requested at a time. No attempt is requested while another
// is live (with overlap, while two are live), for a glidein that has ended or is leaving, directly after a failed
// attempt, or with an expired credential. Deciding twice produces the same decisions.
func TestDecideNeverAsksTooMuch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := drawWorld(t)
		g := w.Glideins[0]
		attempts := g.Attempts

		actions := Decide(now, w)
		if diff := cmp.Diff(actions, Decide(now, w)); diff != "" {
			t.Fatalf("deciding twice differs:\n%s", diff)
		}
		pilots, expired := 0, credential.Refuses(now, w.Site.Credentials, 0)
		for _, a := range actions {
			if _, again := a.(Resume); again && expired != "" {
				t.Fatalf("it submits again although %s", expired)
			}
			if _, submits := a.(Submit); submits && expired != "" {
				t.Fatalf("it submits although %s", expired)
			}
			if s, ok := a.(Submit); ok && s.Kind == corral.PilotJob {
				pilots++
			}
		}
		room := 1
		if g.Overlap > 0 {
			room = 2
		}
		mayAsk := len(g.Live()) < room && !now.Before(w.Held.Until) && g.Asked == "" && !g.State.Terminal() && w.Site.State == corral.SiteReady && keeps(now, &w, &g) == corral.Lack{}
		if n := len(attempts); n > 0 && now.Before(t0.Add(resubmit.BackoffMin)) {
			mayAsk = mayAsk && (attempts[n-1].Live() || slices.Contains([]corral.Outcome{corral.OutcomeExpired, corral.OutcomeDuplicate}, attempts[n-1].Outcome))
		}
		if pilots > 1 || pilots == 1 && !mayAsk {
			t.Fatalf("%d pilots asked for: live %d, asked %q, state %s, site %s", pilots, len(g.Live()), g.Asked, g.State, w.Site.State)
		}
	})
}

// drawWorld draws a site with one glidein of any history, and a time.
func drawWorld(t *rapid.T) (World, time.Time) {
	policy := rapid.SampledFrom([]resubmit.Policy{
		{}, {Mode: resubmit.Forever, Retries: 3}, {Mode: resubmit.Times, Limit: 2}, {Mode: resubmit.Until, Deadline: t0.Add(time.Hour)},
	}).Draw(t, "policy")
	var attempts []corral.Job
	for i := range rapid.IntRange(0, 6).Draw(t, "attempts") {
		if rapid.Bool().Draw(t, "alive") {
			attempts = append(attempts, alive(i+1, rapid.SampledFrom(corral.JobStates[:4]).Draw(t, "state")))
		} else {
			attempts = append(attempts, over(i+1, rapid.SampledFrom(corral.Outcomes[1:]).Draw(t, "outcome")))
		}
	}
	g := glideinWith(policy, attempts...)
	g.Overlap = corral.Seconds(rapid.IntRange(0, 59).Draw(t, "overlap")) * corral.Seconds(time.Second)
	g.Asked = rapid.SampledFrom([]corral.Ask{"", "", "", corral.AskDrain, corral.AskCancel}).Draw(t, "asked")
	if rapid.Bool().Draw(t, "planned") {
		g.NotBefore = t0.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "not before")) * time.Second)
	}
	w := World{Site: corral.Site{State: rapid.OneOf(rapid.Just(corral.SiteReady), rapid.SampledFrom(corral.SiteStates)).Draw(t, "site"), PackageDigest: "sha256:…"}, Glideins: []corral.Glidein{g}}
	if rapid.Bool().Draw(t, "held") {
		w.Held = corral.Hold{Until: t0.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "until")) * time.Second), Why: "a reason"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "credentials") {
		w.Site.Credentials = append(w.Site.Credentials, credential.Credential{Kind: credential.Token, Where: "/t",
			NotAfter: t0.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "expires")) * time.Second),
			Carried:  rapid.Bool().Draw(t, "carried")})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "site jobs") {
		kind := rapid.SampledFrom([]corral.JobKind{corral.SetupJob, corral.CleanupJob}).Draw(t, "kind")
		w.Jobs = append(w.Jobs, siteJobOver(kind, i+1, corral.OutcomeFailed, rapid.Bool().Draw(t, "transient")))
	}
	if rapid.Bool().Draw(t, "condor") {
		drawNeed(t, &w)
	}
	for range rapid.IntRange(0, 4).Draw(t, "waits") {
		p := waited(time.Duration(rapid.IntRange(0, 7200).Draw(t, "wait")) * time.Second)
		switch rapid.IntRange(0, 3).Draw(t, "and then") {
		case 0: // the attempt is still waiting
			p.StartedAt = time.Time{}
		case 1:
			p.EndedAt, p.StartedAt, p.Outcome = p.StartedAt, time.Time{}, corral.OutcomeRemoved
		}
		w.Waits = append(w.Waits, p)
	}
	now := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 7200)).Draw(t, "now") // back-offs are short
	return w, t0.Add(time.Duration(now) * time.Second)
}

// drawNeed turns the glidein into a glidein of an HTCondor pool.
func drawNeed(t *rapid.T, w *World) {
	g := &w.Glideins[0]
	g.Cluster, g.CreatedAt = 3, t0.Add(time.Duration(rapid.IntRange(-1, 0).Draw(t, "created"))*time.Second)
	g.QueueLimit = corral.Seconds(rapid.IntRange(1, 7200).Draw(t, "queue limit")) * corral.Seconds(time.Second)
	n := ready()
	n.Cluster.State = rapid.OneOf(rapid.Just(corral.ClusterReady), rapid.SampledFrom(corral.ClusterStates)).Draw(t, "cluster")
	if rapid.IntRange(0, 9).Draw(t, "fits") == 0 {
		n.Digest, n.Unfit = "", "none fits"
	}
	w.Needs = map[corral.ClusterID]Need{3: n}
	for range rapid.IntRange(0, 3).Draw(t, "stagings") {
		w.Jobs = append(w.Jobs, staged(digest, rapid.SampledFrom([]corral.Outcome{corral.OutcomeDone, corral.OutcomeFailed, corral.OutcomeLost}).Draw(t, "staged"), rapid.Bool().Draw(t, "transient")))
	}
	w.Lifetimes = Lifetimes{Queue: 10 * time.Minute, Renew: time.Minute, Margin: time.Second}
	w.Tokens = map[corral.JobID]Token{}
	for _, a := range g.Live() {
		w.Tokens[a.ID] = Token{Ends: t0.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "token")) * time.Second)}
	}
}

// After a decision, the caller may sleep until Due: before that the decision would be the same.
func TestNothingIsDueBeforeDue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := drawWorld(t)
		until := Due(now, w)
		if until.IsZero() {
			until = now.Add(10000 * time.Hour)
		}
		later := now.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(now)-1)).Draw(t, "later")))
		if diff := cmp.Diff(kinds(Decide(now, w)), kinds(Decide(later, w))); diff != "" {
			t.Fatalf("at %s one thing is decided, at %s, before %s, another:\n%s", now, later, until, diff)
		}
	})
}

func TestDue(t *testing.T) {
	t.Parallel()
	forever := resubmit.Policy{Mode: resubmit.Forever, Retries: 1}
	planned := glideinWith(forever)
	planned.NotBefore = t0.Add(time.Hour)
	lapped := glideinWith(forever, alive(1, corral.JobRunning))
	lapped.Overlap = corral.Seconds(20 * time.Second)
	lost := glideinWith(forever, over(1, corral.OutcomeLost))
	_, retry, _ := lost.Next(t0)
	condor := condorGlidein(forever)
	condor.NotBefore = planned.NotBefore
	finished := planned
	finished.State = corral.GlideinFinished
	expires := func(carried bool) corral.Site {
		return corral.Site{Credentials: []credential.Credential{{Kind: credential.Token, NotAfter: t0.Add(5 * time.Minute), Carried: carried}}}
	}
	tomorrow := siteJobOver(corral.SetupJob, 1, corral.OutcomeFailed, true)
	tomorrow.EndedAt = t0.Add(24 * time.Hour)
	for _, tt := range []struct {
		name string
		w    World
		want time.Time
	}{
		{"nothing", World{}, time.Time{}},
		{"a circuit breaker", World{Held: corral.Hold{Until: t0.Add(time.Second)}, Glideins: []corral.Glidein{planned}}, t0.Add(time.Second)},
		{"a planned start", World{Glideins: []corral.Glidein{planned}}, t0.Add(time.Hour)},
		{"a start that is planned for later", World{Later: t0.Add(Ahead + time.Minute), Glideins: []corral.Glidein{planned}}, t0.Add(time.Minute)},
		{"an overlap", World{Glideins: []corral.Glidein{planned, lapped}}, t0.Add(35 * time.Second)},
		{"no overlap: the end of the walltime is an event", World{Glideins: []corral.Glidein{glideinWith(forever, alive(1, corral.JobRunning))}}, time.Time{}},
		{"a back-off", World{Glideins: []corral.Glidein{planned, lapped, lost}}, retry},
		{"a package of glideins to be staged again", World{Jobs: []corral.Job{staged(digest, corral.OutcomeFailed, true)},
			Needs: map[corral.ClusterID]Need{3: ready()}, Glideins: []corral.Glidein{condor}}, t0.Add(siteJobBackoff)},
		{"an upgrade", World{Installed: Installed{Newer: newer}}, time.Time{}},
		{"an upgrade to be tried again", World{Installed: Installed{Newer: newer}, Jobs: []corral.Job{staged(newer.Digest, corral.OutcomeFailed, true)}}, t0.Add(siteJobBackoff)},
		{"a credential", World{Site: expires(false), Glideins: []corral.Glidein{planned}}, t0.Add(5 * time.Minute)},
		{"a credential that an attempt of a minute must not outlive", World{Site: expires(true), Glideins: []corral.Glidein{planned}}, t0.Add(4*time.Minute + 1)},
		{"a credential that nothing needs", World{Site: expires(true), Glideins: []corral.Glidein{finished}}, t0.Add(5 * time.Minute)},
		{"a setup job to be tried again", World{Jobs: []corral.Job{siteJobOver(corral.SetupJob, 1, corral.OutcomeFailed, true)}}, t0.Add(siteJobBackoff)},
		{"a setup job that ended tomorrow, by a clock that was set back", World{Site: corral.Site{State: corral.SiteStaging}, Jobs: []corral.Job{tomorrow}}, time.Time{}},
	} {
		if got := Due(t0, tt.w); !got.Equal(tt.want) {
			t.Errorf("%s: Due = %s, want %s", tt.name, got, tt.want)
		}
	}
}
