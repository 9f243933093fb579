package personal

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A service answers like corrald and records the changes.
type service struct {
	mu        sync.Mutex // guards the fields below
	changes   []string
	sites     []corral.Site
	clusters  []corral.Cluster
	glideins  []corral.Glidein
	runs      []corral.Run
	ensembles []record.Ensemble
	packages  []corral.Package
	silent    bool                    // sites are not removed
	stubborn  bool                    // pools do not end
	raced     bool                    // another client creates things at the same moment
	refused   map[string]*api.Problem // by path: the answer to give instead
	tools     string                  // the folder of a pool's programs
}

func (s *service) client(t *testing.T) *api.Client {
	t.Helper()
	far := httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(far.Close)
	cl, err := api.New(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		s.changes = append(s.changes, r.Method+" "+r.URL.RequestURI())
	}
	var answer any
	if p := s.refused[r.URL.Path]; p != nil {
		answer = p
	} else {
		answer = s.find(r)
	}
	if answer == nil {
		answer = api.ProblemOf(corral.Errorf(corral.NotFound, "no such thing"))
	}
	if p, ok := answer.(*api.Problem); ok {
		w.Header().Set("Content-Type", api.ProblemMediaType)
		w.WriteHeader(p.Status)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *service) find(r *http.Request) any {
	switch noun, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/"); {
	case r.Method == http.MethodPost && rest == "":
		return s.create(noun)
	case rest == "":
		return s.list(noun)
	default:
		return s.one(noun, r)
	}
}

func (s *service) create(noun string) any {
	if noun == "sites" {
		s.sites = append(s.sites, corral.Site{ID: 1, Name: Site, State: corral.SiteReady})
	} else {
		s.clusters = append(s.clusters, corral.Cluster{ID: 1, Name: Cluster})
	}
	switch {
	case s.raced:
		return api.ProblemOf(corral.Errorf(corral.Conflict, "it exists already"))
	case noun == "sites":
		return s.sites[0]
	}
	return s.clusters[0]
}

func (s *service) list(noun string) any {
	switch noun {
	case "sites":
		return api.List[corral.Site]{Items: s.sites}
	case "clusters":
		return api.List[corral.Cluster]{Items: s.clusters}
	case "glideins":
		return api.List[corral.Glidein]{Items: s.glideins}
	case "packages":
		return api.List[corral.Package]{Items: s.packages}
	case "ensembles":
		return api.List[record.Ensemble]{Items: s.ensembles}
	}
	return api.List[corral.Run]{Items: s.runs}
}

func (s *service) one(noun string, r *http.Request) any {
	switch {
	case noun == "sites" && len(s.sites) > 0:
		site := s.sites[0]
		if r.URL.Query().Get("wait") == string(corral.SiteDeleted) && !s.silent {
			site.State = corral.SiteDeleted
		}
		return site
	case strings.HasSuffix(r.URL.Path, "/env"):
		return api.Env{Path: []string{s.tools}, Variables: []api.Variable{{Name: "CONDOR_CONFIG", Value: "/mine"}}}
	case noun == "clusters" && len(s.clusters) > 0:
		cluster := s.clusters[0]
		if r.URL.Query().Get("wait") == string(corral.ClusterDeleted) && !s.stubborn {
			cluster.State = corral.ClusterDeleted
		}
		return cluster
	case noun == "glideins":
		return s.glideins[0]
	case noun == "ensembles":
		return record.Ensemble{ID: s.ensembles[0].ID, State: record.Ended}
	case noun == "runs":
		return corral.Run{ID: s.runs[0].ID, State: corral.RunCancelled, Reason: "kept: notes.txt"}
	}
	return nil
}

func TestSetUp(t *testing.T) {
	t.Parallel()
	for _, raced := range []bool{false, true} {
		s := &service{raced: raced}
		cl := s.client(t)
		for range 2 { // the second time everything exists
			if site, err := SetUp(t.Context(), cl); err != nil || site.State != corral.SiteReady {
				t.Errorf("raced %v: SetUp = %s, %v, want a READY site", raced, site.State, err)
			}
		}
		if diff := cmp.Diff([]string{"POST /v1/clusters", "POST /v1/sites"}, s.changes); diff != "" {
			t.Errorf("raced %v: changes (-want +got):\n%s", raced, diff)
		}
	}
}

func inUse() *service {
	return &service{
		sites:    []corral.Site{{ID: 1, Name: "far", Root: "/scratch", State: corral.SiteReady}},
		clusters: []corral.Cluster{{ID: 1, Name: "default"}},
		glideins: []corral.Glidein{{ID: 4, State: corral.GlideinActive}, {ID: 5, State: corral.GlideinFinished}},
	}
}

func TestTakeDown(t *testing.T) {
	t.Parallel()
	s := inUse()
	got, err := TakeDown(t.Context(), s.client(t), Down{})
	if diff := cmp.Diff(TakenDown{Glideins: 1}, got); err != nil || diff != "" {
		t.Errorf("TakeDown: %v (-want +got):\n%s", err, diff)
	}
	want := []string{"DELETE /v1/clusters/1/scale", "DELETE /v1/glideins/4", "DELETE /v1/sites/1", "DELETE /v1/clusters/1"}
	if diff := cmp.Diff(want, s.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestTakeDownWithUnfinishedRuns(t *testing.T) {
	t.Parallel()
	s := inUse()
	s.runs = []corral.Run{{ID: 2, Workflow: "long", State: corral.RunRunning}}
	_, err := TakeDown(t.Context(), s.client(t), Down{})
	if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "2 (long)") || len(s.changes) > 0 {
		t.Errorf("TakeDown: %v, changes %v, want a Conflict that names the run, and no change", err, s.changes)
	}
	got, err := TakeDown(t.Context(), s.client(t), Down{Force: true})
	if diff := cmp.Diff(TakenDown{Glideins: 1, Cancelled: []corral.RunID{2}}, got); err != nil || diff != "" {
		t.Errorf("forced: %v (-want +got):\n%s", err, diff)
	}
}

func TestTakeDownWithAnEnsemble(t *testing.T) {
	t.Parallel()
	s := inUse()
	s.ensembles = []record.Ensemble{{ID: 2, Name: "night", State: record.Running}}
	_, err := TakeDown(t.Context(), s.client(t), Down{})
	if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "2 (night)") || len(s.changes) > 0 {
		t.Errorf("TakeDown: %v, changes %v, want a Conflict that names the ensemble, and no change", err, s.changes)
	}
	_, err = TakeDown(t.Context(), s.client(t), Down{Force: true})
	if err != nil || s.changes[0] != "POST /v1/ensembles/2/cancel" {
		t.Errorf("forced: %v, changes %v", err, s.changes)
	}
	s.ensembles[0].State = record.Ended
	if _, err = TakeDown(t.Context(), s.client(t), Down{}); err != nil {
		t.Errorf("with one that has ended: %v", err)
	}
}

func TestTakeDownWithQueuedJobs(t *testing.T) {
	t.Parallel()
	s := inUse()
	queued := func(context.Context, *api.Client) ([]string, error) { return []string{"1.0 1.1 (cluster mine)"}, nil }
	_, err := TakeDown(t.Context(), s.client(t), Down{Queued: queued})
	if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "1.0 1.1 (cluster mine)") || len(s.changes) > 0 {
		t.Errorf("TakeDown: %v, changes %v, want a Conflict that names the jobs, and no change", err, s.changes)
	}
	got, err := TakeDown(t.Context(), s.client(t), Down{Queued: queued, Force: true})
	if diff := cmp.Diff(TakenDown{Glideins: 1}, got); err != nil || diff != "" {
		t.Errorf("forced: %v (-want +got):\n%s", err, diff)
	}
}

// A site that does not answer is given up: its files are listed, and its record is deleted.
func TestTakeDownOfASilentSite(t *testing.T) {
	t.Parallel()
	s := inUse()
	s.silent = true
	got, err := TakeDown(t.Context(), s.client(t), Down{Patience: 10 * time.Millisecond})
	if err != nil || len(got.Left) != 1 || !strings.HasPrefix(got.Left[0], "site far keeps /scratch: ") {
		t.Errorf("TakeDown = %+v, %v, want what the site keeps", got, err)
	}
	want := []string{"DELETE /v1/clusters/1/scale", "DELETE /v1/glideins/4", "DELETE /v1/sites/1", "DELETE /v1/sites/1?force=true", "DELETE /v1/clusters/1"}
	if diff := cmp.Diff(want, s.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// A pool whose daemons do not end is listed after the removal of its cluster was requested.
func TestTakeDownOfAStubbornPool(t *testing.T) {
	t.Parallel()
	s := inUse()
	s.stubborn = true
	s.clusters = []corral.Cluster{{ID: 2, Name: "mine", Kind: corral.Condor, Collector: "127.0.0.1:9618", State: corral.ClusterReady}}
	got, err := TakeDown(t.Context(), s.client(t), Down{Patience: 10 * time.Millisecond})
	if err != nil || len(got.Left) != 1 || !strings.HasPrefix(got.Left[0], "the pool of cluster mine (collector 127.0.0.1:9618) did not end: ") {
		t.Errorf("TakeDown = %+v, %v, want what is left of the pool", got, err)
	}
	if last := s.changes[len(s.changes)-1]; last != "DELETE /v1/clusters/2" {
		t.Errorf("changes %v, want the cluster's removal last", s.changes)
	}
}
