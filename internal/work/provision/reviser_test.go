package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A scene is a plan with one pilot of one cpu, and a run in progress of two tasks of a minute each that could run side
// by side. It also implements the interfaces of the run and the cluster.
type scene struct {
	t        *testing.T
	db       *store.DB
	plan     corral.Plan
	run      corral.Run
	glidein  corral.Glidein
	flow     *workflow.Workflow
	progress []execution.Progress
	workers  []corral.Worker
	asked    func() // called before workers are returned
	expected map[corral.RunID]time.Time
}

// Expect implements Runs.
func (s *scene) Expect(id corral.RunID, end time.Time, revised bool) {
	if s.expected == nil {
		s.expected = map[corral.RunID]time.Time{}
	}
	if s.expected[id] = end; !revised {
		delete(s.expected, id)
	}
}

// Left implements Runs.
func (s *scene) Left(context.Context, corral.RunID) (*workflow.Workflow, []execution.Progress, error) {
	return s.flow, s.progress, nil
}

// Workers implements Workers.
func (s *scene) Workers(corral.ClusterID) []corral.Worker {
	if s.asked != nil {
		s.asked()
	}
	return s.workers
}

func newScene(t *testing.T, goal string, auto bool, others ...string) *scene {
	t.Helper()
	s := &scene{t: t, db: storetest.OpenTest(t), flow: &workflow.Workflow{}}
	graph, err := dag.New(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.flow.Graph = graph
	for _, id := range []string{"a", "b"} {
		s.flow.Tasks = append(s.flow.Tasks, workflow.Task{ID: id, Name: "step", Resources: corral.Resources{CPUs: 1},
			Estimate: time.Minute})
		s.progress = append(s.progress, execution.Progress{State: corral.TaskReady})
	}
	s.write(func(tx *store.Tx) error {
		site, err := ready(tx, "local", "")
		if err != nil {
			return err
		}
		c, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "ada", Kind: corral.Embedded})
		if err != nil {
			return err
		}
		sites := map[string]corral.SiteID{"local": site.ID}
		for _, price := range others { // prices of a site called other
			other, err := ready(tx, "other", price)
			if err != nil {
				return err
			}
			sites["other"] = other.ID
		}
		s.plan, err = tx.CreatePlan(corral.Plan{Owner: "ada", Cluster: c.ID, Workflow: "two", Auto: auto, Sites: sites,
			Digest: "sha256:" + strings.Repeat("0", 64), State: corral.PlanReady, Document: json.RawMessage(
				`{"feasible":true,"makespan_s":121,"cost":{"amount":0.03,"unit":"ch"},"goal":` + goal + `}`)})
		if err != nil {
			return err
		}
		if s.plan, err = tx.MovePlan(s.plan.ID, corral.PlanProvision, ""); err != nil {
			return err
		}
		s.run, err = tx.CreateRun(corral.Run{Owner: "ada", Cluster: c.ID, Workflow: "two", Dir: "/runs/1",
			Options: corral.RunOptions{Clustering: "none"}, Labels: labelled(s.plan)})
		if err != nil {
			return err
		}
		labels := labelled(s.plan)
		labels["pilot"] = "0"
		s.glidein, err = tx.CreateGlidein(corral.Glidein{Owner: "ada", Site: site.ID, Cluster: c.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 1000, Walltime: corral.Seconds(time.Hour)},
			Idle:  plan.LeaveAfter, Labels: labels})
		return err
	})
	return s
}

// ready returns a new site without a batch system that accepts pilots.
func ready(tx *store.Tx, name, price string) (corral.Site, error) {
	site, err := tx.CreateSite(corral.Site{Name: name, Owner: "ada", Contact: "local:", Batch: corral.ForkBatch,
		Root: "/srv/" + name, SiteTerms: corral.SiteTerms{Price: price}})
	if err == nil {
		_, err = tx.MoveSite(site.ID, corral.SiteStage, "")
	}
	if err == nil {
		site, err = tx.MoveSite(site.ID, corral.SiteStaged, "")
	}
	return site, err
}

func (s *scene) write(fn func(*store.Tx) error) {
	s.t.Helper()
	if err := storetest.All(s.db).Write(s.t.Context(), "ada", fn); err != nil {
		s.t.Fatal(err)
	}
}

// works makes the plan's pilot start, with a worker that runs the given number of tasks.
func (s *scene) works(tasks int) {
	s.t.Helper()
	s.write(func(tx *store.Tx) error {
		j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.glidein.Site, Glidein: s.glidein.ID,
			Tag: "tag"})
		if err == nil {
			_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobSubmit, SiteJobID: "1"})
		}
		if err == nil {
			_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobStart, SiteJobID: "1"})
		}
		if err == nil {
			_, err = tx.NoteWorkers(j.ID, 1)
		}
		return err
	})
	s.workers = []corral.Worker{{ID: "tag/0", Glidein: s.glidein.ID, CPUs: 1, CPUsFree: 1 - tasks, MemoryMiB: 1000,
		RunningTasks: tasks, Connected: true}}
}

// reviser returns a new reviser, which does not share the memory of earlier revisers.
func (s *scene) reviser() *Reviser {
	machine := corral.SiteQueue{CPUs: 4, MemoryMiB: 4000}
	return NewReviser(slog.New(slog.DiscardHandler), s.db, s, s, machine)
}

// look makes a reviser perform one check, the given time after the plan's beginning.
func (s *scene) look(r *Reviser, after time.Duration) {
	s.t.Helper()
	all, err := r.under(s.t.Context())
	for _, u := range all {
		if err == nil {
			err = r.revise(s.t.Context(), u, s.plan.BeganAt.Add(after), time.Second, 0)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) revisions() []corral.Revision {
	s.t.Helper()
	all, err := store.Read(s.t.Context(), storetest.All(s.db), func(tx *store.Tx) ([]corral.Revision, error) {
		return tx.Revisions(s.plan.ID, store.Page{})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *scene) pilots() []corral.Glidein {
	s.t.Helper()
	all, err := store.Read(s.t.Context(), storetest.All(s.db), func(tx *store.Tx) ([]corral.Glidein, error) {
		return tx.Glideins(store.GlideinFilter{Filter: store.Filter{All: true}, Labels: labelled(s.plan)})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

const inTime, tooLate = `{"objective":"cost","tradeoff":0,"deadline_s":600}`,
	`{"objective":"cost","tradeoff":0,"deadline_s":90}`

// TestBehindAPilotIsAdded: one pilot is not enough for the deadline. The other pilot is requested once, with a label of
// its own, whichever reviser performs the next check.
func TestBehindAPilotIsAdded(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true)
	s.look(s.reviser(), time.Second)
	s.look(s.reviser(), 2*time.Second) // after a crash, for example
	s.look(s.reviser(), 10*time.Second)
	all, pilots := s.revisions(), s.pilots()
	if len(all) != 1 || len(all[0].Added) != 1 || len(pilots) != 2 || pilots[1].Labels["pilot"] != "1" ||
		pilots[1].Owner != "ada" || all[0].Added[0].Glidein != pilots[1].ID {
		t.Errorf("revisions %+v, pilots %+v", all, pilots)
	}
}

// TestOneExpectedEnd: the run is expected to end when the revision says, until revisions of the plan end.
func TestOneExpectedEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true)
	r := s.reviser()
	s.look(r, time.Second)
	all := s.revisions()
	if len(all) != 1 || !all[0].Complete || !s.expected[s.run.ID].Equal(s.plan.BeganAt.Add(time.Duration(all[0].End))) {
		t.Errorf("the run is expected to end at %v, and the revisions are %+v", s.expected[s.run.ID], all)
	}
	if r.forget(nil); len(s.expected) > 0 {
		t.Errorf("after its plan is over the run is expected to end at %v", s.expected)
	}
}

// TestRevisionKeepsTheAssumptions: pilots are added at the sites for which the plan was requested, with the price and
// the start-up time at the plan's creation. A site whose price is in another unit is excluded; the limits mention this
// if the site would help.
func TestRevisionKeepsTheAssumptions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, asked string
		price       string // price of the site other
		at          string // site at which a pilot is added
		cost        string // end of the predicted cost
		limits      string // part of the limits
	}{
		{"nothing", `{}`, "", "local", "ch", "[]"},
		{"a site", `{"sites":["other"]}`, "", "other", "ch", "[]"},
		{"a price", `{"price":"3EUR/cpu-hour"}`, "", "local", "EUR", "[]"},
		{"one price for several units", `{"price":"3EUR/cpu-hour"}`, "1USD/cpu-hour", "local", "EUR", "[]"},
		{"a start-up of two minutes", `{"overhead_s":120}`, "", "local", "ch", "the fastest ends after 3m0s"},
		{"several units", `{}`, "1USD/cpu-hour", "local", "ch", "[]"},
		{"a site of another unit", `{"sites":["other"]}`, "1USD/cpu-hour", "", "ch",
			"[no site accepts pilots site other: its price is in USD, the plan's in ch]"},
	} {
		unit := "ch"
		if strings.Contains(tc.asked, "EUR") {
			unit = "EUR"
		}
		s := newScene(t, tooLate+`,"asked":`+tc.asked+`,"cost":{"amount":0.03,"unit":"`+unit+`"}`, true, tc.price)
		s.look(s.reviser(), time.Second)
		var at []string
		var limits []string
		for _, r := range s.revisions() {
			for _, p := range r.Added {
				at = append(at, p.Site)
			}
			limits = append(limits, r.Limits...)
			if !strings.HasSuffix(r.Cost, tc.cost) {
				t.Errorf("%s: %s is predicted, want it in %s", tc.name, r.Cost, tc.cost)
			}
		}
		if strings.Join(at, " ") != tc.at || !strings.Contains(fmt.Sprint(limits), tc.limits) {
			t.Errorf("%s: added at %q, %q; want %q, %s", tc.name, at, limits, tc.at, tc.limits)
		}
	}
}

// TestAddedPilotsAreReserved: an added pilot's cost is reserved for the plan.
func TestAddedPilotsAreReserved(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true)
	reserved := func() (sum cost.Money) {
		l, err := store.Read(t.Context(), storetest.All(s.db), func(tx *store.Tx) (cost.Ledger, error) {
			return tx.Ledger(s.glidein.Site)
		})
		for _, line := range l.Plans {
			sum = sum.Plus(line.Reserved)
		}
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := reserved()
	s.look(s.reviser(), time.Second)
	if after := reserved(); len(s.revisions()) != 1 || after <= before {
		t.Errorf("%s was reserved, and is %s with a pilot more: %+v", before, after, s.revisions())
	}
}

// TestRefusedPilotsDoNotCount: if the pilots of a revision are refused, it and the run report the end without them.
func TestRefusedPilotsDoNotCount(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true)
	s.works(0)
	s.write(func(tx *store.Tx) error { _, err := tx.MoveOwner("ada", corral.OwnerSuspend, "for now"); return err })
	s.look(s.reviser(), time.Second)
	all := s.revisions()
	if len(all) != 1 || len(all[0].Added) > 0 || time.Duration(all[0].End) < 2*time.Minute || all[0].News != "late" {
		t.Fatalf("revisions %+v, want one that predicts the end after two tasks in sequence", all)
	}
	if why := strings.Join(all[0].Why(), "; "); !strings.Contains(why, "no more pilots are allowed") ||
		!strings.Contains(why, "suspended") || strings.Contains(why, "with 1 more") {
		t.Errorf("its reason is %q", why)
	}
	if end := s.plan.BeganAt.Add(time.Duration(all[0].End)); !s.expected[s.run.ID].Equal(end) {
		t.Errorf("the run is expected to end at %v, want %v", s.expected[s.run.ID], end)
	}
}

// TestPilotsAreReservedAtAllSitesOrNone: if the balance of one site does not allow the additions, nothing is reserved
// at the others.
func TestPilotsAreReservedAtAllSitesOrNone(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true, "")
	s.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(s.plan.Sites["other"], func(site *corral.Site) { site.Allocation = "0.001ch" })
		return err
	})
	add := []plan.Pilot{
		{Site: "local",
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)},
			End:   corral.Seconds(time.Minute)},
		{Site: "other",
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)},
			End:   corral.Seconds(time.Minute)},
	}
	var facts []Facts
	s.write(func(tx *store.Tx) error {
		all, err := tx.Sites(store.Filter{})
		for _, site := range all {
			facts = append(facts, Facts{Site: site})
		}
		return err
	})
	_, err := s.reviser().carryOut(t.Context(), sight{underway: underway{plan: s.plan, run: s.run}, facts: facts}, revision.View{},
		revision.Decision{Add: add, News: revision.Late})
	if err != nil {
		t.Fatal(err)
	}
	all := s.revisions()
	if len(all) != 1 || len(all[0].Added) > 0 || !strings.Contains(fmt.Sprint(all[0].Limits), "site other: plan 1 needs") {
		t.Errorf("revisions %+v", all)
	}
	l, err := store.Read(t.Context(), storetest.All(s.db), func(tx *store.Tx) (cost.Ledger, error) { return tx.Ledger(s.glidein.Site) })
	if err != nil || l.Committed() != 0 {
		t.Errorf("ledger %+v, %v", l, err)
	}
}

// TestSpentBalanceKeepsTheRestOfADecision: a missed deadline is reported although no pilot can be added.
func TestSpentBalanceKeepsTheRestOfADecision(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, true)
	s.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(s.glidein.Site, func(site *corral.Site) { site.Allocation = "0.001ch" })
		return err
	})
	s.look(s.reviser(), time.Second)
	all := s.revisions()
	if len(all) != 1 || len(all[0].Added) != 0 || all[0].News != "late" || len(s.pilots()) != 1 {
		t.Errorf("%+v", all)
	}
}

// TestFullSiteIsNamedOnce: a run that is behind while its site accepts no more pilots is reported once, in a revision
// and in the histories of the plan and of the run; it is reported again when the site is full after pilots were added.
func TestFullSiteIsNamedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, `{"objective":"makespan","tradeoff":0}`, true)
	limit := func(most int) {
		s.write(func(tx *store.Tx) error {
			_, err := tx.SetSite(s.glidein.Site, func(site *corral.Site) { site.Limits.MaxRunning = most })
			return err
		})
	}
	r := s.reviser()
	limit(1)
	s.works(1)
	s.flow.Tasks[1].Estimate = 10 * time.Minute
	s.flow.Tasks[0].Estimate = 10 * time.Minute
	for k := range 3 {
		s.look(r, time.Duration(10*k+1)*time.Second)
	}
	all := s.revisions()
	if len(all) != 1 || all[0].News != "limited" || fmt.Sprint(all[0].Limits) != "[site local accepts 0 more pilot(s)]" {
		t.Fatalf("%+v", all)
	}
	why := strings.Join(all[0].Why(), "; ")
	err := storetest.All(s.db).View(t.Context(), func(tx *store.Tx) error {
		plan, err := tx.History(corral.ObjectPlan, int64(s.plan.ID), store.Page{})
		if err != nil {
			return err
		}
		run, err := tx.History(corral.ObjectRun, int64(s.run.ID), store.Page{})
		if plan[len(plan)-1].Reason != why || run[len(run)-1].Reason != why || run[len(run)-1].Event != "limited" {
			t.Errorf("plan %+v, run %+v; want %q", plan, run, why)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	limit(2)
	s.look(r, 40*time.Second)
	s.flow.Tasks[1].Estimate = time.Hour // longer than the site's pilots stay
	s.look(r, 80*time.Second)
	s.look(r, 120*time.Second)
	if all = s.revisions(); len(all) != 3 || len(all[1].Added) != 1 || all[2].News != "limited" {
		t.Errorf("%+v", all)
	}
}

// TestMachineIsSharedWithOthers: cpus of a machine that are held by others are not available to a revision, and the
// plan's own pilots count once. Pilots that were ordered to end, or are about to be because their run is over, no
// longer count.
func TestMachineIsSharedWithOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stay, leave, over, added int }{ // cpus; the machine has 4, the plan's pilot 1
		"room":                     {stay: 2, added: 1},
		"none is left":             {stay: 3, added: 0},
		"some were told to go":     {stay: 2, leave: 2, added: 1},
		"some are of a run's past": {stay: 2, over: 2, added: 1},
	} {
		s := newScene(t, tooLate, true)
		s.write(func(tx *store.Tx) error { return besides(tx, s, c.stay, c.leave, c.over) })
		s.look(s.reviser(), time.Second)
		if n := len(s.pilots()) - 1; n != c.added {
			t.Errorf("%s: %d pilot(s) added, want %d; %+v", name, n, c.added, s.revisions())
		}
	}
}

// TestRevisionsKnowSlowSites: at a site that is slow according to the plan, a revision expects tasks to take longer.
func TestRevisionsKnowSlowSites(t *testing.T) {
	t.Parallel()
	const goal = `{"objective":"cost","tradeoff":0,"deadline_s":200},"assumed":{"hop_s":0,"error":"0","queues":[]%s}`
	for speeds, added := range map[string]int{"": 0, `,"speeds":{"local":0.5}`: 1} { // one pilot: two minutes, or four
		s := newScene(t, fmt.Sprintf(goal, speeds), true)
		s.look(s.reviser(), time.Second)
		if n := len(s.pilots()) - 1; n != added {
			t.Errorf("with %q %d pilot(s) are added, want %d; %+v", speeds, n, added, s.revisions())
		}
	}
}

// TestTimesOnSlowHosts: a decision uses the time that a task would have taken on the fastest hosts, even if it ran on a
// pilot that is gone. So slow hosts do not raise the expected times of other tasks.
func TestTimesOnSlowHosts(t *testing.T) {
	t.Parallel()
	at := func(site, tag string) corral.Glidein {
		return corral.Glidein{SiteName: site, Attempts: []corral.Job{{Tag: tag}}}
	}
	s := sight{glideins: []corral.Glidein{at("slow", "a"), at("fast", "b")}, others: []corral.Glidein{at("slow", "c")}}
	s.document.Assumed = &plan.Assumed{Speeds: map[string]corral.Speed{"slow": 0.5}}
	workers := []string{"a/0", "b/3", "c/0", "gone/0", ""}
	for _, worker := range workers {
		s.progress = append(s.progress, execution.Progress{State: corral.TaskDone, Worker: worker, Took: time.Minute})
	}
	var v revision.View
	s.tasks(&v, nil)
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, time.Minute, time.Minute} {
		if got := v.Tasks[i].Took; got != want {
			t.Errorf("on worker %q it took %s, want %s", workers[i], got, want)
		}
	}
}

// besides creates glideins of another cluster at the scene's site, with these numbers of cpus: some stay, some were
// ordered to end, and some were requested by a plan whose run is over.
func besides(tx *store.Tx, s *scene, stay, leave, over int) error {
	k, err := tx.CreateCluster(corral.Cluster{Name: "other", Owner: "ada", Kind: corral.Embedded})
	if err != nil {
		return err
	}
	p := s.plan
	p.ID, p.Cluster, p.State, p.Auto = 0, k.ID, corral.PlanReady, false
	if p, err = tx.CreatePlan(p); err != nil {
		return err
	}
	r, err := tx.CreateRun(corral.Run{Owner: "ada", Cluster: k.ID, Workflow: "two", Dir: "/runs/2",
		Options: s.run.Options, Labels: labelled(p)})
	if err == nil {
		_, err = tx.MovePlan(p.ID, corral.PlanProvision, "")
	}
	if err == nil {
		_, err = tx.MoveRun(r.ID, corral.RunFail, "a task failed")
	}
	for i, cpus := range []int{stay, leave, over} {
		if err != nil || cpus == 0 {
			continue
		}
		g := corral.Glidein{Owner: "ada", Site: s.glidein.Site, Cluster: k.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: cpus, MemoryMiB: 1000, Walltime: corral.Seconds(time.Hour)}}
		if i == 2 {
			g.Labels = labelled(p)
		}
		if g, err = tx.CreateGlidein(g); err == nil && i == 1 {
			if _, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: g.Site, Glidein: g.ID, Tag: "other"}); err == nil {
				_, err = tx.AskGlidein(g.ID, corral.AskDrain, "")
			}
		}
	}
	return err
}

// TestNearTheBudgetLooksAreHurried: a pilot is not ended as long as the next check can be early enough to end it.
func TestNearTheBudgetLooksAreHurried(t *testing.T) {
	t.Parallel()
	// The budget pays for 36 s of the pilot's cpu.
	s := newScene(t, `{"objective":"makespan","tradeoff":0,"budget":{"amount":0.01,"unit":"ch"}}`, true)
	s.works(1)
	s.progress[0] = execution.Progress{State: corral.TaskDone, Took: time.Minute}
	s.progress[1] = execution.Progress{State: corral.TaskRunning, Worker: "tag/0", Since: s.plan.BeganAt}
	s.flow.Tasks[1].Estimate = 34 * time.Second
	for _, tc := range []struct {
		after time.Duration
		next  time.Duration
		asked corral.Ask
	}{
		{20 * time.Second, period, corral.AskNothing},
		{32500 * time.Millisecond, hurried, corral.AskNothing}, // held until 36.5 s if the next check were 2 s later
		{33700 * time.Millisecond, hurried, corral.AskCancel},
	} {
		r := s.reviser()
		s.look(r, s.pilots()[0].Attempts[0].StartedAt.Sub(s.plan.BeganAt)+tc.after)
		if g := s.pilots()[0]; g.Asked != tc.asked || r.next(period) != tc.next || r.next(2*period) != 2*period {
			t.Errorf("after %s: asked %q, the next look after %s; want %q, %s", tc.after, g.Asked, r.next(period),
				tc.asked,
				tc.next)
		}
	}
}

// TestDecisionsConsiderTheNextLook: however long checks take, a check's decision accounts for the end of the next
// check, as long as checks take no longer than their searches may, or than the previous check.
func TestDecisionsConsiderTheNextLook(t *testing.T) {
	t.Parallel()
	if got := horizon(period, 0); got != 3*time.Second {
		t.Errorf("short looks count with %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		pause, took := period, time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			share := func() time.Duration { return time.Duration(rapid.IntRange(0, 100).Draw(t, "percent")) }
			this := max(search(pause), took) * share() / 100
			next := after(this, pause)
			longest := max(search(next), this)
			if gap, counted := this+next+longest, horizon(pause, took); gap > counted {
				t.Fatalf("after %s a look of %s: the next one is over after %s, %s are counted", pause, this, gap,
					counted)
			}
			pause, took = next, this
		}
	})
}

// TestSearchesAreBoundedForABudget: one plan's budget bounds the searches for all plans.
func TestSearchesAreBoundedForABudget(t *testing.T) {
	t.Parallel()
	for goal, want := range map[string]time.Duration{
		`{}`: 0, `{"budget":{"amount":1,"unit":"ch"}}`: 500 * time.Millisecond,
	} {
		s := newScene(t, goal, true)
		r := s.reviser()
		all, err := r.under(t.Context())
		if got := r.allotted(append(all, all...), 3*time.Second); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", goal, got, err, want)
		}
		if r.hurry = true; r.allotted(all, 3*time.Second) != min(want, hurried/2) {
			t.Errorf("%s: in a hurry %s", goal, r.allotted(all, 3*time.Second))
		}
	}
}

// TestRevisionAssumesTheSameAsItsPlan: values learned about a cluster apply to both.
func TestRevisionAssumesTheSameAsItsPlan(t *testing.T) {
	t.Parallel()
	learned := plan.Plan{Evidence: plan.Evidence{Assumed: &plan.Assumed{Hop: corral.Seconds(time.Second), Rate: 7}}}
	if got, want := clusterOf(corral.Condor, false, learned), (plan.Cluster{Rate: 7, Hop: time.Second}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := clusterOf(corral.Condor, false, plan.Plan{}), Cluster(corral.Condor, false); got != want {
		t.Errorf("a plan that does not say: %+v, want %+v", got, want)
	}
}

// TestOnlyAutomaticPlansAreRevised: a plan that a user provisioned is left alone, and so is a plan without a run.
func TestOnlyAutomaticPlansAreRevised(t *testing.T) {
	t.Parallel()
	s := newScene(t, tooLate, false)
	s.look(s.reviser(), time.Second)
	over := newScene(t, tooLate, true)
	over.write(func(tx *store.Tx) error { _, err := tx.MoveRun(over.run.ID, corral.RunFail, ""); return err })
	over.look(over.reviser(), time.Second)
	if len(s.revisions())+len(over.revisions()) != 0 {
		t.Errorf("revisions %+v, %+v", s.revisions(), over.revisions())
	}
}

// TestIdlePilotIsDrained: the only task that is left is running elsewhere, and the pilot has no task to expect.
func TestIdlePilotIsDrained(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		tasks   int // number of tasks at the check
		then    int // number of tasks when it is drained
		drained bool
	}{{"idle", 0, 0, true}, {"busy", 1, 1, false}, {"given a task in between", 0, 1, false}} {
		s := newScene(t, inTime, true)
		s.works(tc.tasks)
		s.workers = append(s.workers, corral.Worker{ID: "other/0", Glidein: 99, CPUs: 1, Connected: true,
			RunningTasks: 1})
		s.write(func(tx *store.Tx) error {
			_, err := tx.CreateGlidein(corral.Glidein{Owner: "ada", Site: s.glidein.Site, Cluster: s.plan.Cluster,
				Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 1000, Walltime: corral.Seconds(time.Hour)}})
			return err
		})
		s.workers[1].Glidein = s.glidein.ID + 1
		s.progress[0] = execution.Progress{State: corral.TaskDone, Took: time.Minute}
		s.progress[1] = execution.Progress{State: corral.TaskRunning, Worker: "other/0", Since: s.plan.BeganAt}
		r := s.reviser()
		s.look(r, 10*time.Second)
		asks := 0
		s.asked = func() {
			if asks++; asks == 2 { // the first call is for the check, the second for draining
				s.workers[0].RunningTasks = tc.then
			}
		}
		s.look(r, 20*time.Second)
		if g := s.pilots()[0]; (g.Asked == corral.AskDrain) != tc.drained {
			t.Errorf("%s: asked %q, want drained: %v; %+v", tc.name, g.Asked, tc.drained, s.revisions())
		}
	}
}

// TestNewsIsRecorded: the histories of the plan and of the run record once that a deadline will be missed.
func TestNewsIsRecorded(t *testing.T) {
	t.Parallel()
	s := newScene(t, `{"objective":"cost","tradeoff":0,"deadline_s":30}`, true)
	for k := range 4 {
		s.look(s.reviser(), time.Duration(10*k+1)*time.Second)
	}
	err := storetest.All(s.db).View(t.Context(), func(tx *store.Tx) error {
		plan, err := tx.History(corral.ObjectPlan, int64(s.plan.ID), store.Page{})
		if err != nil {
			return err
		}
		run, err := tx.History(corral.ObjectRun, int64(s.run.ID), store.Page{})
		late := 0
		for _, e := range append(plan, run...) {
			if strings.Contains(e.Reason, "the deadline of 30s will be missed") {
				late++
			}
		}
		if late != 2 || run[len(run)-1].Event != "late" {
			t.Errorf("plan %+v, run %+v", plan, run)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPlanIsReadOnce: a plan's promise is read at the first check, and forgotten when the plan is released.
func TestPlanIsReadOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, `{}`, true)
	r := s.reviser()
	for range 2 {
		if _, err := r.look(t.Context(), time.Second); err != nil || len(r.said) != 1 {
			t.Fatalf("%d plans are remembered, %v; want one", len(r.said), err)
		}
	}
	s.write(func(tx *store.Tx) error { _, err := tx.MovePlan(s.plan.ID, corral.PlanRelease, ""); return err })
	if _, err := r.look(t.Context(), time.Second); err != nil || len(r.said) != 0 {
		t.Errorf("%d plans are remembered, %v; want none", len(r.said), err)
	}
}

// TestOnlyPlansToReviseAreRead: of a plan that is not revised, nothing but the existence of its budget is read, and of a
// plan that only has a budget, not the schedule, which is missing here.
func TestOnlyPlansToReviseAreRead(t *testing.T) {
	t.Parallel()
	const apart = `,"schedule_apart":{"tasks":100000,"digest":"sha256:0"}`
	for goal, remembered := range map[string]int{`{}`: 0, `{"budget":{"amount":1,"unit":"ch"}}`: 1} {
		s := newScene(t, goal+apart, false)
		r := s.reviser()
		busy, err := r.look(t.Context(), time.Second)
		if err != nil || busy != (remembered > 0) || len(r.said) != remembered || len(r.unread) > 0 {
			t.Errorf("%s: busy %t, %d plans are remembered, %d are unreadable, %v", goal, busy, len(r.said),
				len(r.unread), err)
		}
	}
}

// TestUnreadablePlan: the failure is logged once, not at every check; a minute later the plan is read again, and
// revised if that succeeds.
func TestUnreadablePlan(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	apart, err := plan.WriteSchedule(&lines, []plan.Placement{{ID: "a", End: 60e9}, {ID: "b", End: 60e9}})
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, fmt.Sprintf(`%s,"schedule_apart":{"tasks":2,"digest":%q}`, tooLate, apart.Digest), true)
	var log bytes.Buffer
	r := NewReviser(slog.New(slog.NewTextHandler(&log, nil)), s.db, s, s, corral.SiteQueue{CPUs: 4, MemoryMiB: 4000})
	s.look(r, time.Second)
	s.look(r, 2*time.Second)

	schedule, err := s.db.NewSchedule(func(to io.Writer) error { _, err := lines.WriteTo(to); return err })
	if err != nil {
		t.Fatal(err)
	}
	s.write(func(tx *store.Tx) error { return schedule.Keep(tx, s.plan) })
	for _, c := range []struct {
		after   time.Duration
		revised bool
	}{{time.Minute, false}, {62 * time.Second, true}} {
		s.look(r, c.after)
		if revised := len(s.revisions()) > 0; revised != c.revised {
			t.Errorf("after %s: revised %t, want %t", c.after, revised, c.revised)
		}
	}
	if n := strings.Count(log.String(), "cannot be read"); n != 1 {
		t.Errorf("it is reported %d times, want once:\n%s", n, log.String())
	}
}

// TestFailedCheckForgetsNothing: if the plans cannot be listed, what is known about them remains.
func TestFailedCheckForgetsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, inTime, true)
	r := s.reviser()
	s.look(r, time.Second)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := r.look(stopped, time.Second); err == nil || len(r.said) != 1 || len(r.budgets) != 1 || len(s.expected) != 1 {
		t.Errorf("%v: %d plans, %d budgets and %d expected ends are known, want 1 of each", err, len(r.said),
			len(r.budgets), len(s.expected))
	}
}
