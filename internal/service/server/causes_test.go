package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// ways :: way in which pilots, or tasks for them, are requested → a request for that at SITE, in CLUSTER.
var ways = map[string]struct{ method, target, body string }{
	"directly": {"POST", "/v1/glideins", `{"site": "SITE", "cluster": "CLUSTER", "hosts": 1, "cpus": 1, "walltime_s": 600}`},
	"by resubmission": {"POST", "/v1/glideins",
		`{"site": "SITE", "cluster": "CLUSTER", "hosts": 1, "cpus": 1, "walltime_s": 600, "resubmit": "forever", "overlap_s": 30}`},
	"by a scale": {"PUT", "/v1/clusters/CLUSTER/scale", `{"sites": ["SITE"], "min_cpus": 1, "max_cpus": 4, "cpus": 1, "walltime_s": 600}`},
	"by a plan": {"POST", "/v1/plans",
		`{"sites": ["SITE"], "cluster": "CLUSTER", "default_runtime_s": 60, "goal": {}, "workflow": ` + chain + `}`},
	"by a plan that is revised": {"POST", "/v1/plans", `{"sites": ["SITE"], "cluster": "CLUSTER", "default_runtime_s": 60, "goal": {}, ` +
		`"auto": true, "next_run": {}, "workflow": ` + chain + `}`},
	"by an ensemble": {"POST", "/v1/ensembles", ensembleOf(`"site": "SITE", "cluster": "CLUSTER"`, "{}")},
	"by a run":       {"POST", "/v1/runs", `{"cluster": "CLUSTER", "workflow_name": "w", "options": {}, "workflow": ` + chain + `}`},
}

// acts are requests about ann's existing objects that are carried out later, as ann.
var acts = map[string]struct{ method, target string }{
	"provision": {"POST", "/v1/plans/1/provision"}, "release": {"POST", "/v1/plans/1/release"},
	"unscale": {"DELETE", "/v1/clusters/1/scale"}, "cancel a run": {"POST", "/v1/runs/1/cancel"},
	"cancel an ensemble": {"POST", "/v1/ensembles/1/cancel"}, "remove a glidein": {"DELETE", "/v1/glideins/1"},
	"remove a site": {"DELETE", "/v1/sites/1"},
}

// causers :: caller → the verdicts for new objects at ann's places, and for ann's existing objects.
var causers = map[string][2]access.Verdict{
	"bob": {access.Hidden, access.Hidden}, "bob local": {access.Hidden, access.Hidden},
	"bob host-paths": {access.Hidden, access.Hidden}, "bob packages": {access.Hidden, access.Hidden},
	"root": {access.Forbidden, access.Allowed}, "local": {access.Forbidden, access.Allowed},
}

// own gives an owner a READY site and a cluster, both called own.
func (g *throng) own(t *testing.T, owner string) {
	t.Helper()
	g.write(t, func(tx *store.Tx) error {
		s, err := tx.CreateSite(corral.Site{Name: "own", Owner: owner, Contact: "ssh://me@" + owner, Batch: "fork", HeadBatch: "fork", Root: "/srv/" + owner})
		if err == nil {
			_, err = tx.MoveSite(s.ID, corral.SiteStage, "")
		}
		if err == nil {
			_, err = tx.MoveSite(s.ID, corral.SiteStaged, "")
		}
		if err == nil {
			_, err = tx.CreateCluster(corral.Cluster{Name: "own", Owner: owner, Kind: corral.Embedded})
		}
		return err
	})
}

// ask sends a request as a caller; corrald's own user uses the socket.
func (g *throng) ask(t *testing.T, who, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	if who != "local" {
		return g.as(t, who, method, target, body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	checked(t, g.server).ServeHTTP(rec, r)
	return rec
}

// Requests that callers may not make directly are not made for them by a scale, a plan, an ensemble or resubmission
// either: at ann's site and in ann's cluster no other owner can start anything, by name or by id. All can at their own.
// An act on ann's objects needs permission, and its consequences belong to ann.
func TestIndirectRequests(t *testing.T) {
	t.Parallel()
	for who, want := range causers {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			g := newThrong(t, access.Limits{})
			g.settle(t)
			owner, grant, _ := strings.Cut(who, " ")
			if grant != "" {
				g.token(t, who, corral.Token{Role: corral.RoleUser, Grants: []corral.Grant{corral.Grant(grant)}})
			}
			g.own(t, owner)
			for how, way := range ways {
				g.begins(t, who, how, way, want[0])
			}
			for how, way := range ways { // a cluster has one controller, and little is known of a site: not all succeed
				in := strings.NewReplacer("SITE", "own", "CLUSTER", "own")
				rec := g.ask(t, who, way.method, in.Replace(way.target), in.Replace(way.body))
				if got := verdictOf(t, rec); got != access.Allowed {
					t.Errorf("%s at the own site: %s (%d %s)", how, got, rec.Code, rec.Body)
				}
			}
			for what, act := range acts {
				rec := g.ask(t, who, act.method, act.target, "")
				if got := verdictOf(t, rec); got != want[1] {
					t.Errorf("%s of ann's: %s (%d %s), want %s", what, got, rec.Code, rec.Body, want[1])
				}
			}
			storetest.CheckOwners(t, storetest.Path(g.db))
		})
	}
}

// begins tries one way at ann's places.
func (g *throng) begins(t *testing.T, who, how string, way struct{ method, target, body string }, want access.Verdict) {
	t.Helper()
	ask := func(site, cluster string) *httptest.ResponseRecorder {
		in := strings.NewReplacer("SITE", site, "CLUSTER", cluster)
		return g.ask(t, who, way.method, in.Replace(way.target), in.Replace(way.body))
	}
	for _, at := range [][2]string{{"1", "1"}, {"1", "own"}, {"own", "1"}, {"hpc", "own"}, {"own", "default"}} {
		if !strings.Contains(way.body, "SITE") && at[1] == "own" {
			continue // it requests nothing at a site
		}
		if rec := ask(at[0], at[1]); verdictOf(t, rec) != want {
			t.Errorf("%s at site %s in cluster %s: %s (%d %s), want %s", how, at[0], at[1], verdictOf(t, rec), rec.Code, rec.Body, want)
		}
	}
}
