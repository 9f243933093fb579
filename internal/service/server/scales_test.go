package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func newScale() api.NewScale {
	return api.NewScale{Sites: []string{"local"}, Max: 8, CPUs: 2, Walltime: corral.Seconds(time.Hour)}
}

func TestScaleOfACluster(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	_, err := f.ClusterScale(t.Context(), "default")
	wantKind(t, "not scaled", err, corral.NotFound, "cluster")
	s := must(f.ScaleCluster(t.Context(), "default", newScale()))(t)
	if s.Max != 8 || s.Idle != corral.Seconds(time.Minute) || s.ClusterName != "default" || s.Owner != "local" {
		t.Errorf("%+v", s)
	}
	if again := must(f.ClusterScale(t.Context(), "default"))(t); again.Terms() != s.Terms() {
		t.Errorf("%+v, want %+v", again, s)
	}
	must(f.UnscaleCluster(t.Context(), "default"))(t)
	_, err = f.UnscaleCluster(t.Context(), "default")
	wantKind(t, "not scaled any more", err, corral.NotFound, "cluster")
	in := newScale()
	in.Sites = []string{"local", "1"}
	_, err = f.ScaleCluster(t.Context(), "default", in)
	wantKind(t, "a site by its name and its id", err, corral.Invalid, "sites")
	for place, spoil := range map[string]func(*api.NewScale){
		"sites":    func(n *api.NewScale) { n.Sites = nil },
		"min_cpus": func(n *api.NewScale) { n.Min = 9 },
		"cpus":     func(n *api.NewScale) { n.CPUs = 9 },
		"max_cpus": func(n *api.NewScale) { n.Max = 0 },
	} {
		in := newScale()
		spoil(&in)
		_, err := f.ScaleCluster(t.Context(), "default", in)
		wantKind(t, place, err, corral.Invalid, place)
	}
	in = newScale()
	in.CPUs, in.Max = 4000, 4000
	_, err = f.ScaleCluster(t.Context(), "default", in)
	wantKind(t, "workers that no site can give", err, corral.Unsatisfiable, "cpus")
}

// A cluster has one controller: one scale, or one PROVISIONED plan, before and during its run.
func TestOneControllerOfACluster(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	auto := newPlan()
	auto.Auto = true
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	s := must(f.ScaleCluster(t.Context(), "default", newScale()))(t)
	_, err := f.ScaleCluster(t.Context(), "default", newScale())
	wantKind(t, "a second scale", err, corral.Conflict, "cluster")
	_, err = f.CreatePlan(t.Context(), auto, "")
	wantKind(t, "a plan that is to be revised where a scale is", err, corral.Conflict, "cluster")
	_, err = f.ProvisionPlan(t.Context(), row.ID)
	wantKind(t, "a plan where a scale is", err, corral.Conflict, "cluster")
	if again := must(f.ClusterScale(t.Context(), "default"))(t); again.Terms() != s.Terms() {
		t.Errorf("%+v, want %+v", again, s)
	}
	must(f.UnscaleCluster(t.Context(), "default"))(t)

	must(f.ProvisionPlan(t.Context(), row.ID))(t)
	_, err = f.ScaleCluster(t.Context(), "default", newScale())
	wantKind(t, "a scale where a plan awaits its run", err, corral.Conflict, "cluster")
	in := newRun()
	in.Labels = map[string]string{"plan": fmt.Sprint(row.ID)}
	run := must(f.CreateRun(t.Context(), in, ""))(t)
	_, err = f.ScaleCluster(t.Context(), "default", newScale())
	wantKind(t, "a scale where a planned run is", err, corral.Conflict, "cluster")
	must(f.CancelRun(t.Context(), run.ID))(t)
	must(f.WaitRun(t.Context(), run.ID, time.Minute))(t)
	must(f.ScaleCluster(t.Context(), "default", newScale()))(t)
	if p := must(f.Plan(t.Context(), row.ID))(t); p.State != corral.PlanReleased {
		t.Errorf("the plan is %s beside a scale, want %s", p.State, corral.PlanReleased)
	}
}

// A plan whose run is over does not prevent a site's removal, even before the plan is released; a plan that still
// requests pilots does.
func TestSiteOfAPlanWhoseRunIsOver(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.readySite(t)
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	must(f.ProvisionPlan(t.Context(), row.ID))(t)
	_, err := f.RemoveSite(t.Context(), site.Name, false)
	wantKind(t, "a plan awaits its run", err, corral.Conflict, "site")
	in := newRun()
	in.Labels = map[string]string{"plan": fmt.Sprint(row.ID)}
	run := must(f.CreateRun(t.Context(), in, ""))(t)
	_, err = f.RemoveSite(t.Context(), site.Name, false)
	wantKind(t, "its run goes on", err, corral.Conflict, "site")
	must(f.CancelRun(t.Context(), run.ID))(t)
	must(f.WaitRun(t.Context(), run.ID, time.Minute))(t)
	if got := must(f.RemoveSite(t.Context(), site.Name, false))(t); got.State != corral.SiteExiting {
		t.Errorf("the site is %s", got.State)
	}
	if p := must(f.Plan(t.Context(), row.ID))(t); p.State != corral.PlanReleased {
		t.Errorf("the plan is %s, want %s", p.State, corral.PlanReleased)
	}
}

// If a scale and a plan are requested at once, one is refused.
func TestOneOfTwoControllersAtOnce(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for range 10 {
		row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
		planned := later(func() error {
			_, err := f.ProvisionPlan(t.Context(), row.ID)
			return err
		})
		_, scaled := f.ScaleCluster(t.Context(), "default", newScale())
		if err := <-planned; (err == nil) == (scaled == nil) {
			t.Fatalf("plan: %v; scale: %v; want one of them", err, scaled)
		} else if err == nil {
			wantKind(t, "a scale beside a plan", scaled, corral.Conflict, "cluster")
			must(f.ReleasePlan(t.Context(), row.ID))(t)
		} else {
			wantKind(t, "a plan beside a scale", err, corral.Conflict, "cluster")
			must(f.UnscaleCluster(t.Context(), "default"))(t)
		}
	}
}

// A plan that is revised needs its cluster for itself during its run, because tasks are sent to any worker of a
// cluster. If two begin at once, the conflict is found when their runs begin.
func TestOnePlanOfAClusterIsRevised(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	plan := func(auto bool, cluster string) corral.Plan {
		in := newPlan()
		in.Auto, in.Cluster = auto, cluster
		return must(f.CreatePlan(t.Context(), in, ""))(t)
	}
	run := func(p corral.Plan, cluster string) (corral.Run, error) {
		in := newRun()
		in.Cluster, in.Labels = cluster, map[string]string{"plan": fmt.Sprint(p.ID)}
		return f.CreateRun(t.Context(), in, "")
	}
	must(f.CreateCluster(t.Context(), api.NewCluster{Name: "other", Kind: corral.Embedded}, ""))(t)
	one, two, three := plan(true, "default"), plan(true, "default"), plan(true, "default")
	elsewhere, still := plan(true, "other"), plan(false, "default")
	must(f.ProvisionPlan(t.Context(), one.ID))(t)
	must(f.ProvisionPlan(t.Context(), two.ID))(t)
	first := must(run(one, "default"))(t)
	_, err := run(two, "default")
	wantKind(t, "the run of a second plan", err, corral.Conflict, "cluster")
	_, err = f.ProvisionPlan(t.Context(), three.ID)
	wantKind(t, "the pilots of a third plan", err, corral.Conflict, "cluster")
	must(run(one, "default"))(t)
	must(f.ProvisionPlan(t.Context(), still.ID))(t) // it is not revised
	must(run(still, "default"))(t)
	must(f.ProvisionPlan(t.Context(), elsewhere.ID))(t)
	must(run(elsewhere, "other"))(t)
	f.write(t, func(tx *store.Tx) error {
		for _, id := range []corral.RunID{first.ID, first.ID + 1} {
			if _, err := tx.MoveRun(id, corral.RunFail, ""); err != nil {
				return err
			}
		}
		return nil
	})
	must(run(two, "default"))(t)
}

// A run may be labelled only with its owner's plan on the same cluster, which has pilots.
func TestTheLabelOfARunNamesItsPlan(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	must(f.CreateCluster(t.Context(), api.NewCluster{Name: "other", Kind: corral.Embedded}, ""))(t)
	ours := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	theirs := ours
	theirs.Owner = "ada"
	f.write(t, func(tx *store.Tx) error {
		cluster, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "ada", Kind: corral.Embedded})
		if err == nil {
			theirs.Cluster = cluster.ID
			theirs, err = tx.CreatePlan(theirs)
		}
		return err
	})
	for _, tc := range []struct {
		label, cluster string
		kind           corral.Kind
	}{
		{"soon", "default", corral.Invalid},
		{"99", "default", corral.NotFound},
		{fmt.Sprint(theirs.ID), "default", corral.Forbidden},
		{fmt.Sprint(ours.ID), "other", corral.Invalid},
		{fmt.Sprint(ours.ID), "default", corral.Conflict}, // it is READY
	} {
		in := newRun()
		in.Cluster, in.Labels = tc.cluster, map[string]string{"plan": tc.label}
		_, err := f.CreateRun(t.Context(), in, "")
		wantKind(t, tc.label, err, tc.kind, "labels")
	}
	if all := must(f.Runs(t.Context(), api.Filter{All: true}))(t); len(all) > 0 {
		t.Errorf("refused, and there are %d runs", len(all))
	}
}
