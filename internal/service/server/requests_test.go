package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
)

const glideinBody = `{"site": "local", "hosts": 1, "cpus": 1, "walltime_s": 600}`

// TestStrictDecoding: an imperfect request changes nothing.
func TestStrictDecoding(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for _, tc := range []struct {
		name, body, place string
		status            int
	}{
		{"unknown field", `{"site": "local", "hosts": 1, "cpus": 1, "walltime_s": 600, "wall_time": 1}`, "wall_time", 400},
		{"trailing data", glideinBody + `{}`, "body", 400},
		{"trailing junk", glideinBody + `junk`, "body", 400},
		{"empty", ``, "body", 400},
		{"cut off", glideinBody[:20], "body", 400},
		{"junk", strings.Repeat("junk", 1000), "body", 400},
		{"array", `[]`, "body", 400},
		{"wrong type", `{"site": "local", "hosts": "2"}`, "hosts", 400},
		{"fraction", `{"site": "local", "hosts": 1.5}`, "hosts", 400},
		{"seconds as text", `{"hosts": 1, "walltime_s": "10m"}`, "walltime_s", 400},
		{"no time", `{"not_before": "tomorrow"}`, "not_before", 400},
		{"too long", `{"site": "` + strings.Repeat("a", api.MaxBody) + `"}`, "body", 413},
	} {
		status, p, _ := f.send(t, http.MethodPost, "/v1/glideins", tc.body)
		if status != tc.status || p.Kind != corral.Invalid || p.Place != tc.place {
			t.Errorf("%s: %d %+v, want %d at %s", tc.name, status, p, tc.status, tc.place)
		}
		if strings.Contains(p.Detail, "api.") {
			t.Errorf("%s: %q speaks of our code", tc.name, p.Detail)
		}
	}
	if list := must(f.Glideins(t.Context(), api.Filter{All: true}))(t); len(list) != 0 {
		t.Errorf("glideins %v were created", list)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for _, tc := range []struct {
		method, target, body string
		status               int
		kind                 corral.Kind
		place                string
	}{
		{"GET", "/v1/nothing", "", 404, corral.NotFound, "/v1/nothing"},
		{"GET", "/", "", 404, corral.NotFound, "/"},
		{"PUT", "/v1/sites", "{}", 405, corral.Invalid, "PUT /v1/sites"},
		{"GET", "/v1/sites?al=true", "", 400, corral.Invalid, "al"},
		{"GET", "/v1/sites?all=maybe", "", 400, corral.Invalid, "all"},
		{"GET", "/v1/sites?limit=1001", "", 400, corral.Invalid, "limit"},
		{"GET", "/v1/sites?after=-1", "", 400, corral.Invalid, "after"},
		{"GET", "/v1/runs/1/tasks?limit=10001", "", 400, corral.Invalid, "limit"},
		{"GET", "/v1/glideins?label=a", "", 400, corral.Invalid, "label"},
		{"GET", "/v1/glideins?site=nowhere", "", 404, corral.NotFound, "site"},
		{"GET", "/v1/runs?state=running", "", 400, corral.Invalid, "state"},
		{"GET", "/v1/sites/local?wait=SOON", "", 400, corral.Invalid, "wait"},
		{"GET", "/v1/sites/local?wait=READY&timeout_s=NaN", "", 400, corral.Invalid, "timeout_s"},
		{"GET", "/v1/sites/nowhere", "", 404, corral.NotFound, "site"},
		{"GET", "/v1/sites/99", "", 404, corral.NotFound, "site"},
		{"GET", "/v1/sites/99999999999999999999", "", 404, corral.NotFound, "site"},
		{"GET", "/v1/clusters/nowhere", "", 404, corral.NotFound, "cluster"},
		{"GET", "/v1/glideins/1", "", 404, corral.NotFound, "id"},
		{"GET", "/v1/glideins/x", "", 404, corral.NotFound, "id"},
		{"GET", "/v1/glideins/1/log?file=order.json", "", 400, corral.Invalid, "file"},
		{"GET", "/v1/runs/1", "", 404, corral.NotFound, "id"},
		{"DELETE", "/v1/glideins/1", "", 404, corral.NotFound, "id"},
		{"DELETE", "/v1/sites/local?force=perhaps", "", 400, corral.Invalid, "force"},
		{"DELETE", "/v1/sites/local", "{}", 400, corral.Invalid, "body"},
		{"POST", "/v1/glideins?key=1", glideinBody, 400, corral.Invalid, "key"},
	} {
		status, p, _ := f.send(t, tc.method, tc.target, tc.body)
		if status != tc.status || p.Kind != tc.kind || p.Place != tc.place {
			t.Errorf("%s %s: %d %+v, want %d %s at %s", tc.method, tc.target, status, p, tc.status, tc.kind, tc.place)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		status, p, _ := f.send(t, http.MethodPost, "/v1/glideins", glideinBody, "Content-Type", media)
		if status != http.StatusUnsupportedMediaType || p.Kind != corral.Invalid {
			t.Errorf("content type %q: %d %+v, want 415", media, status, p)
		}
	}
	if status, _, _ := f.send(t, http.MethodPost, "/v1/glideins", glideinBody, "Content-Type", "application/json; charset=utf-8"); status != http.StatusCreated {
		t.Errorf("application/json with a charset: %d", status)
	}
}

func TestInternalErrorsAreLoggedNotShown(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.untold = errors.New("a secret")
	if status, _, body := f.send(t, http.MethodPost, "/v1/sites", `{"name":"a","contact":"local:","batch":"fork"}`); status != 500 || strings.Contains(body, "secret") {
		t.Errorf("an internal error answered %d %s", status, body)
	}
	if !strings.Contains(f.log.String(), "a secret") {
		t.Errorf("log has no internal error: %s", f.log)
	}
}

func TestChangesAreLogged(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.send(t, http.MethodGet, "/v1/sites", "")
	if f.log.Len() != 0 {
		t.Errorf("a read was logged: %s", f.log)
	}
	f.send(t, http.MethodPost, "/v1/sites", `{"name":"a","contact":"local:","batch":"fork"}`, api.KeyHeader, "k1")
	for _, want := range []string{"msg=request", "method=POST", "path=/v1/sites", "status=201", "actor=local", "key=k1"} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("log %q has no %s", f.log, want)
		}
	}
	if n := strings.Count(f.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines for one change", n)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	first := must(f.CreateGlidein(t.Context(), small(), "k"))(t)
	f.attempt(t, first, "a") // the stored answer does not change
	again := must(f.CreateGlidein(t.Context(), small(), "k"))(t)
	if first.ID != again.ID || len(again.Attempts) != 0 {
		t.Errorf("answers %+v and %+v, want the same", first, again)
	}
	other := small()
	other.Hosts = 3
	_, err := f.CreateGlidein(t.Context(), other, "k")
	wantKind(t, "same key, other request", err, corral.KeyReused, "")
	if got := api.ProblemOf(err).Status; got != http.StatusUnprocessableEntity {
		t.Errorf("status %d, want 422", got)
	}
	_, err = f.CreateSite(t.Context(), api.NewSite{Name: "b", Contact: "local:", Batch: "fork"}, "k")
	wantKind(t, "same key, other route", err, corral.KeyReused, "")
	_, err = f.CreateGlidein(t.Context(), small(), strings.Repeat("k", api.MaxKey+1))
	wantKind(t, "too long a key", err, corral.Invalid, api.KeyHeader)
	if list := must(f.Glideins(t.Context(), api.Filter{}))(t); len(list) != 1 {
		t.Errorf("%d glideins, want 1", len(list))
	}
}

// TestBadKeys: an invalid key is refused, and nothing is done.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for name, keys := range map[string][]string{
		"empty": {""}, "blank": {" "}, "not ASCII": {"clé"}, "control": {"a\tb"}, "two": {"a", "b"},
		"long": {strings.Repeat("k", api.MaxKey+1)},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/glideins", strings.NewReader(glideinBody))
		r.Header = http.Header{"Content-Type": {"application/json"}, api.KeyHeader: keys}
		rec := httptest.NewRecorder()
		f.server.ServeHTTP(rec, r)
		var p api.Problem
		err := json.Unmarshal(rec.Body.Bytes(), &p)
		if err != nil || p.Status != http.StatusBadRequest || p.Place != api.KeyHeader {
			t.Errorf("%s: %d %s, want 400 at %s", name, rec.Code, rec.Body, api.KeyHeader)
		}
	}
	if list := must(f.Glideins(t.Context(), api.Filter{All: true}))(t); len(list) != 0 {
		t.Errorf("glideins %v were created", list)
	}
}

// TestRefusalIsNotKept: a refused request may be repeated with its key once the obstacle is gone.
func TestRefusalIsNotKept(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, err := f.CreateGlidein(t.Context(), small(), "k")
	wantKind(t, "no site", err, corral.NotFound, "site")
	f.readySite(t)
	if _, err := f.CreateGlidein(t.Context(), small(), "k"); err != nil {
		t.Errorf("the repetition: %v", err)
	}
}

// TestKeptAnswerNeedsNoProbe: a repetition is answered even if the site could not be created now.
func TestKeptAnswerNeedsNoProbe(t *testing.T) {
	t.Parallel()
	f := start(t)
	in := api.NewSite{Name: "a", Contact: "local:", Batch: "fork"}
	first := must(f.CreateSite(t.Context(), in, "k"))(t)
	f.bad = &gridsite.Refused{Text: "it is not writable"}
	if again, err := f.CreateSite(t.Context(), in, "k"); err != nil || again.ID != first.ID {
		t.Errorf("the repetition: %v, %v, want site %d", again, err, first.ID)
	}
}

func TestConcurrentRequestsWithOneKey(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			g, err := f.CreateGlidein(t.Context(), small(), "k")
			ids <- fmt.Sprint(g.ID, err)
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("answers %s and %s", first, id)
		}
	}
	if list := must(f.Glideins(t.Context(), api.Filter{}))(t); len(list) != 1 {
		t.Errorf("%d glideins, want 1", len(list))
	}
}
