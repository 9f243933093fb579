package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
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
}

// A cluster has one controller: one scale, or a plan for a run that is under way.
func TestOneControllerOfACluster(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	must(f.ScaleCluster(t.Context(), "default", newScale()))(t)
	_, err := f.ScaleCluster(t.Context(), "default", newScale())
	wantKind(t, "a second scale", err, corral.Conflict, "cluster")
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	_, err = f.ProvisionPlan(t.Context(), row.ID)
	wantKind(t, "a plan where a scale is", err, corral.Conflict, "cluster")
	must(f.UnscaleCluster(t.Context(), "default"))(t)
	must(f.ProvisionPlan(t.Context(), row.ID))(t)
	in := newRun()
	in.Labels = map[string]string{"plan": fmt.Sprint(row.ID)}
	must(f.CreateRun(t.Context(), in, ""))(t)
	_, err = f.ScaleCluster(t.Context(), "default", newScale())
	wantKind(t, "a scale where a planned run is", err, corral.Conflict, "cluster")
}
