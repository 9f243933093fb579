package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/worldstate"
	"github.com/corral-pilot/corral/resubmit"
)

// For any events, legal or not, at any times: a World to which all of them were applied by Apply equals the World
// that the store has recorded, with the same refusals and the same history entries. So a simulation behaves like the
// store.
func TestApplyIsWhatTheStoreDoes(t *testing.T) {
	t.Parallel()
	tw := &twins{w: newWorld(t), pilots: map[corral.JobID]bool{}}
	tw.w.write(func(tx *store.Tx) (err error) {
		tw.starting, err = tx.CreateCluster(corral.Cluster{Name: "starting", Owner: actor, Kind: corral.Condor})
		return err
	})
	rapid.Check(t, func(rt *rapid.T) {
		tw.T, tw.now, tw.jobs, tw.glideins = rt, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), nil, nil
		tw.begin()
		setBack := rapid.Bool().Draw(rt, "the clock is set back at times")
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			tw.now = tw.now.Add(draw(rt, "later", 0, time.Millisecond, time.Second, 3*time.Second, time.Minute, 20*time.Minute))
			if setBack && rapid.IntRange(0, 5).Draw(rt, "set back") == 0 {
				tw.now = tw.now.Add(-draw(rt, "by", time.Second, time.Minute, time.Hour))
			}
			tw.step()
			if !setBack && rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				if w := tw.load(); w.Later.IsZero() {
					tw.applied = w
				}
			}
		}
	})
}

// digest identifies a package that sites use.
var digest = "sha256:" + strings.Repeat("1", 64)

// twins hold one site twice, in the store and as a World.
type twins struct {
	*rapid.T
	w                    *world
	starting             corral.Cluster // a cluster that does not accept glideins yet
	applied              reconcile.World
	now                  time.Time
	jobs                 []corral.JobID
	pilots               map[corral.JobID]bool // the jobs that are attempts
	glideins             []corral.GlideinID
	lastJob, lastGlidein int64 // in the database
	lastEntry            int64
}

// begin creates another site.
func (tw *twins) begin() {
	var s corral.Site
	tw.write(func(tx *store.Tx) (err error) {
		if s, err = tx.CreateSite(newSite(fmt.Sprint("site-", tags.Add(1)))); err != nil {
			return err
		}
		s, err = tx.SetSite(s.ID, func(s *corral.Site) {
			s.Limits.MaxQueued, s.Package, s.PackageDigest = draw(tw.T, "limit", 0, 2), "pilot", digest
		})
		return err
	})
	tw.applied = reconcile.World{Site: s}
	tw.entries()
	if rapid.IntRange(0, 4).Draw(tw.T, "new") > 0 {
		tw.both(reconcile.MoveSite{Move: corral.SiteStage})
		tw.both(reconcile.MoveSite{Move: corral.SiteStaged})
	}
}

func (tw *twins) write(fn func(*store.Tx) error) {
	if err := tw.w.db.WriteAt(tw.w.t.Context(), tw.now, actor, fn); err != nil {
		tw.Fatal(err)
	}
}

// load returns the World that the store holds.
func (tw *twins) load() (w reconcile.World) {
	err := tw.w.db.ViewAt(tw.w.t.Context(), tw.now, func(tx *store.Tx) (err error) {
		w, err = worldstate.World(tx, tw.applied.Site.ID)
		w.Waits = nil // Apply's caller provides them
		return err
	})
	if err != nil {
		tw.Fatal(err)
	}
	return w
}

// awake returns w without the glideins that a READY site does not need before its time.
func awake(now time.Time, w reconcile.World) reconcile.World {
	if w.Site.State != corral.SiteReady {
		return w
	}
	by := now.Add(reconcile.Ahead)
	w.Glideins = slices.DeleteFunc(slices.Clone(w.Glideins), func(g corral.Glidein) bool {
		wakes := g.NotBefore
		if until := g.Resubmit.Deadline; !until.IsZero() && until.Before(wakes) {
			wakes = until
		}
		asleep := g.State == corral.GlideinWaiting && g.Follows == 0 && wakes.After(by)
		if asleep && (w.Later.IsZero() || wakes.Before(w.Later)) {
			w.Later = wakes
		}
		return asleep
	})
	return w
}

// entries returns the entries that the store has written since the last call.
func (tw *twins) entries() (list []corral.Entry) {
	err := tw.w.db.ViewAt(tw.w.t.Context(), tw.now, func(tx *store.Tx) (err error) {
		list, err = tx.HistoryAfter(tw.lastEntry, 0)
		return err
	})
	if err != nil {
		tw.Fatal(err)
	}
	if n := len(list); n > 0 {
		tw.lastEntry = list[n-1].ID
	}
	return list
}

// step applies a decision, as the engine would, or a random change.
func (tw *twins) step() {
	switch rapid.IntRange(0, 9).Draw(tw.T, "step") {
	case 0, 1, 2:
		for _, a := range reconcile.Decide(tw.now, tw.applied) {
			if c, ok := a.(reconcile.Change); ok {
				tw.both(c)
			}
		}
	case 3:
		tw.setSite()
	case 4, 5:
		tw.comeToNothing()
	default:
		tw.both(tw.drawChange())
	}
}

// comeToNothing applies the events that open a circuit breaker when they are repeated.
func (tw *twins) comeToNothing() {
	e := corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Transient: true, Reason: "no room"}
	_ = tw.both(reconcile.CreateGlidein{Glidein: tw.drawGlidein(), Cluster: tw.w.cluster}) &&
		tw.both(reconcile.Submit{Kind: corral.PilotJob, Glidein: corral.GlideinID(tw.lastGlidein)}) &&
		tw.both(reconcile.MoveJob{Job: corral.JobID(tw.lastJob), Event: e})
}

// setSite changes facts about the site, for which there is no rule.
func (tw *twins) setSite() {
	var s corral.Site
	trouble := draw(tw.T, "trouble", corral.SiteTrouble{}, corral.SiteTrouble{Why: "no route", Since: tw.now})
	tw.write(func(tx *store.Tx) (err error) {
		s, err = tx.SetSite(tw.applied.Site.ID, func(s *corral.Site) { s.Trouble = trouble })
		return err
	})
	tw.applied.Site = s
}

func (tw *twins) drawChange() reconcile.Change {
	rt := tw.T
	ask := draw(rt, "ask", corral.AskNothing, corral.AskDrain, corral.AskCancel)
	move := draw(rt, "move", corral.SiteStage, corral.SiteStaged, corral.SiteStage, corral.SiteStaged, corral.SiteStaged, corral.SiteFail,
		corral.SiteRemove, corral.SiteEmptied, corral.SiteUnstaged, corral.SiteForget)
	job, glidein := corral.Job{ID: pick(rt, tw.jobs)}, pick(rt, tw.glideins)
	switch draw(rt, "what", "site", "create", "create", "ask", "retime", "settle", "submit", "submit", "serve", "cancel", "drain",
		"move", "move", "move", "move", "lease", "workers", "workers", "waits", "lose") {
	case "site":
		if rapid.IntRange(0, 3).Draw(rt, "at all") > 0 { // most histories happen at a READY site
			move = corral.SiteStaged
		}
		return reconcile.MoveSite{Move: move, Reason: "drawn"}
	case "create":
		return reconcile.CreateGlidein{Glidein: tw.drawGlidein(), Cluster: draw(rt, "cluster", tw.w.cluster, tw.w.cluster, tw.w.cluster, tw.starting)}
	case "ask":
		return reconcile.AskGlidein{Glidein: glidein, Ask: ask, Reason: "drawn"}
	case "retime":
		at := tw.now.Add(time.Duration(rapid.IntRange(-1, 100).Draw(rt, "hours ahead")) * time.Hour)
		return reconcile.Retime{Glidein: glidein, At: at, Reason: "drawn"}
	case "settle":
		return reconcile.Settle{Glidein: glidein, Lack: draw(rt, "lack", corral.Lack{}, corral.Lack{Why: "no pool"}, corral.Lack{Why: "none fits", Final: true})}
	case "submit":
		return reconcile.Submit{Kind: corral.PilotJob, Glidein: glidein, Reason: "drawn"}
	case "serve":
		s := reconcile.Submit{Kind: draw(rt, "kind", corral.SetupJob, corral.CleanupJob), Move: draw(rt, "with", "", move), Reason: "drawn"}
		if s.Kind == corral.SetupJob {
			s.Package = draw(rt, "package", "", digest)
		}
		return s
	case "cancel":
		return reconcile.Cancel{Job: job, Reason: "drawn"}
	case "drain":
		return reconcile.Drain{Job: job}
	case "lease":
		return reconcile.LeaseJob{Job: job.ID, Holder: draw(rt, "holder", "", "a", "b"), Session: draw(rt, "session", "", "s", "t")}
	case "workers":
		return reconcile.NoteWorkers{Job: job.ID, Workers: rapid.IntRange(0, 4).Draw(rt, "workers")}
	case "waits":
		return reconcile.NoteWaits{Job: job.ID, Why: draw(rt, "why", "", "Priority", "Resources")}
	case "lose":
		return reconcile.LoseHost{Job: job.ID, Host: corral.LostHost{Host: rapid.IntRange(-1, 2).Draw(rt, "host"), Node: "n1", Why: "disk"}}
	}
	e := tw.drawEvent()
	if !tw.pilots[job.ID] {
		e.Lost = nil
	}
	return reconcile.MoveJob{Job: job.ID, Event: e}
}

func (tw *twins) drawGlidein() corral.Glidein {
	g := tw.w.newGlidein()
	g.Resubmit = draw(tw.T, "policy", resubmit.Policy{Retries: 2}, resubmit.Policy{Mode: resubmit.Times, Limit: 2, Retries: 1}, resubmit.Policy{Retries: -1},
		resubmit.Policy{Mode: resubmit.Forever, Retries: 9}, resubmit.Policy{Mode: resubmit.Until, Deadline: tw.now.Add(time.Minute), Retries: 3})
	g.Overlap = draw(tw.T, "overlap", 0, corral.Seconds(40*time.Minute))
	g.NotBefore = draw(tw.T, "not before", time.Time{}, time.Time{}, tw.now.Add(time.Minute), tw.now.Add(90*time.Minute))
	g.Queue = draw(tw.T, "queue", "", "long")
	return g
}

func (tw *twins) drawEvent() corral.JobEvent {
	e := corral.JobEvent{Move: draw(tw.T, "event", corral.JobSubmit, corral.JobQueue, corral.JobStart, corral.JobEnd, corral.JobEnd), Reason: "drawn", SiteJobID: draw(tw.T, "site job", "", "4711")}
	e.At = draw(tw.T, "at", time.Time{}, tw.now, tw.now.Add(-time.Second), tw.now.Add(-time.Hour), tw.now.Add(time.Hour))
	if e.Move == corral.JobEnd {
		e.Outcome = rapid.SampledFrom(slices.Concat(corral.Outcomes, []corral.Outcome{corral.OutcomeExpired, corral.OutcomeLost, corral.OutcomeFailed})).Draw(tw.T, "outcome")
		e.Transient = rapid.Bool().Draw(tw.T, "transient")
		e.Failure = draw(tw.T, "failure", "", "", corral.FailureQuota, corral.FailureAuthentication)
		e.Lost = draw(tw.T, "lost", nil, []corral.LostHost{{Host: 1, Node: "n2", Why: "disk"}})
	}
	return e
}

// both makes a change in both worlds, compares them, and reports whether the change was accepted.
func (tw *twins) both(c reconcile.Change) bool {
	switch named := c.(type) { // the caller assigns the names of new objects
	case reconcile.Submit:
		named.ID, named.Tag = corral.JobID(tw.lastJob+1), fmt.Sprintf("tag-%d", tags.Add(1))
		c = named
	case reconcile.CreateGlidein:
		named.Glidein.ID = corral.GlideinID(tw.lastGlidein + 1)
		c = named
	}
	said, refused := tw.applied.Apply(c, tw.now)
	if corral.KindOf(refused) == corral.NotFound && tw.left(c) {
		return false
	}
	for i := range said {
		said[i].Actor = actor
	}
	err := tw.w.db.WriteAt(tw.w.t.Context(), tw.now, actor, func(tx *store.Tx) error { return tw.perform(tx, c) })
	if corral.KindOf(err) != corral.KindOf(refused) || fmt.Sprint(err) != fmt.Sprint(refused) {
		tw.Fatalf("%T%+v is refused with %v by the store, with %v by the world", c, c, err, refused)
	}
	if diff := gocmp.Diff(tw.entries(), said, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(corral.Entry{}, "ID")); diff != "" {
		tw.Fatalf("after %T%+v the histories differ (-store +world):\n%s", c, c, diff)
	}
	if diff := gocmp.Diff(counts(tw.load(), tw.now), counts(awake(tw.now, tw.applied), tw.now), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(reconcile.World{})); diff != "" {
		tw.Fatalf("after %T%+v, which was refused with %v, the worlds differ (-store +world):\n%s", c, c, refused, diff)
	}
	return refused == nil
}

// left reports whether the subject of a change is no longer in the World, or never existed in the store.
func (tw *twins) left(c reconcile.Change) bool {
	var job corral.JobID
	var glidein corral.GlideinID
	switch c := c.(type) {
	case reconcile.AskGlidein:
		glidein = c.Glidein
	case reconcile.Retime:
		glidein = c.Glidein
	case reconcile.Settle:
		glidein = c.Glidein
	case reconcile.Submit:
		glidein = c.Glidein
	case reconcile.Cancel:
		job = c.Job.ID
	case reconcile.Drain:
		job = c.Job.ID
	case reconcile.LeaseJob:
		job = c.Job
	case reconcile.NoteWorkers:
		job = c.Job
	case reconcile.NoteWaits:
		job = c.Job
	case reconcile.LoseHost:
		job = c.Job
	case reconcile.MoveJob:
		job = c.Job
	}
	w := tw.load()
	known := func(a corral.Job) bool { return a.ID == job }
	in := slices.ContainsFunc(w.Jobs, known) || slices.ContainsFunc(w.Told, known)
	for _, g := range w.Glideins {
		in = in || g.ID == glidein || slices.ContainsFunc(g.Attempts, known)
	}
	return !in && (slices.Contains(tw.jobs, job) || slices.Contains(tw.glideins, glidein))
}

// perform makes a change in the store.
func (tw *twins) perform(tx *store.Tx, c reconcile.Change) (err error) {
	site := tw.applied.Site.ID
	switch c := c.(type) {
	case reconcile.MoveSite:
		_, err = tx.MoveSite(site, c.Move, c.Reason)
	case reconcile.CreateGlidein:
		c.Glidein.Site, c.Glidein.Cluster = site, c.Cluster.ID
		var g corral.Glidein
		if g, err = tx.CreateGlidein(c.Glidein); err == nil {
			tw.glideins, tw.lastGlidein = append(tw.glideins, g.ID), int64(g.ID)
		}
	case reconcile.AskGlidein, reconcile.Retime, reconcile.Settle:
		err = worldstate.Record(tx, c.(reconcile.Action))
	case reconcile.Submit:
		if c.Move != "" {
			if _, err := tx.MoveSite(site, c.Move, c.Reason); err != nil {
				return err
			}
		}
		var j corral.Job
		if j, err = tx.CreateJob(corral.Job{Kind: c.Kind, Site: site, Glidein: c.Glidein, Package: c.Package, Tag: c.Tag}); err == nil {
			tw.jobs, tw.lastJob, tw.pilots[j.ID] = append(tw.jobs, j.ID), int64(j.ID), c.Kind == corral.PilotJob
		}
	case reconcile.Cancel:
		_, err = tx.AskJob(c.Job.ID, corral.AskCancel, c.Why())
	case reconcile.Drain:
		_, err = tx.AskJob(c.Job.ID, corral.AskDrain, c.Why())
	case reconcile.LeaseJob:
		_, err = tx.LeaseJob(c.Job, c.Holder, c.Session)
	case reconcile.NoteWorkers:
		_, err = tx.NoteWorkers(c.Job, c.Workers)
	case reconcile.NoteWaits:
		_, err = tx.NoteWaits(c.Job, c.Why)
	case reconcile.LoseHost:
		_, err = tx.LoseHost(c.Job, c.Host)
	case reconcile.MoveJob:
		_, err = tx.MoveJob(c.Job, c.Event)
	}
	return err
}

// counts returns the part of a world that matters at now: an applied one may remember more.
func counts(w reconcile.World, now time.Time) reconcile.World {
	w.Told = nil // Held follows from it
	w.Glideins = slices.DeleteFunc(slices.Clone(w.Glideins), func(g corral.Glidein) bool { return g.State.Terminal() })
	w.Over = slices.DeleteFunc(slices.Clone(w.Over), func(a corral.Job) bool { return a.CreatedAt.Before(now.Add(-reconcile.SubmitWindow)) })
	slices.SortFunc(w.Over, func(a, b corral.Job) int { return cmp.Compare(a.ID, b.ID) })
	return w
}
