package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/decide/access"
)

// A keybox stores the ssh keys of owners below a folder, like corrald.
type keybox string

func (k keybox) PublicKey(owner string) (string, error) {
	return ssh.OwnKey(string(k)+"/"+owner, "corral-"+owner)
}

func problemIn(t *testing.T, rec *httptest.ResponseRecorder) (p api.Problem) {
	t.Helper()
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != rec.Code {
		t.Fatalf("%d %s is not a problem", rec.Code, rec.Body)
	}
	return p
}

// References to corrald's host that users may not make, field by field; each is accepted once it is granted, and not
// with another grant.
func TestHostIsNotTheUsers(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.settle(t)
	for _, grant := range corral.Grants {
		g.token(t, "ann "+string(grant), corral.Token{Role: corral.RoleUser, Grants: []corral.Grant{grant}})
	}
	run := func(field string) string {
		return fmt.Sprintf(`{"workflow_name": "w", "workflow": %s, "options": {}, %q: "/srv/anns"}`, chain, field)
	}
	for _, tt := range []struct {
		method, target, body, place string
		grants                      []corral.Grant // each of which suffices
	}{
		{"POST", "/v1/sites", `{"name": "here", "contact": "local:", "batch": "fork"}`, "contact", []corral.Grant{corral.GrantLocal}},
		{"POST", "/v1/runs", run("source_dir"), "source_dir", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/runs", run("dir"), "dir", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/runs", run("done_dir"), "done_dir", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/runs", run("rescue"), "rescue", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/runs/dry-run", run("source_dir"), "source_dir", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/plans", `{"workflow": ` + chain + `, "goal": {}, "next_run": {"source_dir": "/srv/anns"}}`, "source_dir", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/clusters", `{"name": "pool", "kind": "condor", "htcondor": "/opt/condor"}`, "htcondor", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/clusters/1/start", `{"htcondor": "/opt/condor"}`, "htcondor", []corral.Grant{corral.GrantHostPaths}},
		{"POST", "/v1/clusters", `{"name": "pool", "kind": "condor", "address": "127.0.0.1"}`, "address", []corral.Grant{corral.GrantLocal}},
		{"POST", "/v1/clusters", `{"name": "pool", "kind": "condor", "collector": "127.0.0.1:1", "token": "a.b.c"}`, "collector", []corral.Grant{corral.GrantLocal}},
		{"POST", "/v1/packages", `{"source": "https://localhost:1/p"}`, "", []corral.Grant{corral.GrantPackages}},
		{"POST", "/v1/packages", `{"source": "/srv/p.tar.gz"}`, "source", nil}, // it requires two grants
		{"POST", "/v1/packages", `{"source": "sftp://host/p.tar.gz"}`, "source", nil},
		{"POST", "/v1/mirrors", `{"name": "m2", "url": "sftp://host/m"}`, "url", nil},
		{"POST", "/v1/mirrors", `{"name": "m2", "url": "http://localhost:1/m"}`, "", []corral.Grant{corral.GrantPackages}},
	} {
		for _, who := range []string{"ann", "ann local", "ann host-paths", "ann packages"} {
			_, grant, _ := strings.Cut(who, " ")
			rec := g.as(t, who, tt.method, tt.target, tt.body)
			refused := rec.Code == http.StatusForbidden
			if granted := slices.Contains(tt.grants, corral.Grant(grant)); refused == granted {
				t.Errorf("%s: %s %s %s: %d %s", who, tt.method, tt.target, tt.body, rec.Code, rec.Body)
			}
			if p := tt.place; refused && p != "" && grant == "" && access.OperationOf(tt.method, tt.target).Resource != "packages" &&
				access.OperationOf(tt.method, tt.target).Resource != "mirrors" && problemIn(t, rec).Place != p {
				t.Errorf("%s %s: refused at %q, want %q", tt.target, tt.body, problemIn(t, rec).Place, p)
			}
		}
	}
}

// A workflow without a folder on corrald's host has neither input files nor scripts, which would run there.
func TestScriptsNeedAFolder(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.settle(t)
	const inputs = `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a", "parents": [],
		"children": [], "inputFiles": ["../../etc/passwd"]}], "files": [{"id": "../../etc/passwd", "sizeInBytes": 1}]}}}`
	const script = `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a", "parents": [],
		"children": [], "x-corral": {"pre": {"argv": ["/bin/sh", "-c", "id"]}}}]}}}`
	const nested = `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a", "parents": [],
		"children": [], "outputFiles": ["d", "d/s/k"]}], "files": [{"id": "d", "sizeInBytes": 1}, {"id": "d/s/k", "sizeInBytes": 1}]}}}`
	for name, w := range map[string]string{"inputs": inputs, "script": script, "names within each other": nested} {
		rec := g.as(t, "ann", http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflow_name": "w", "options": {}, "workflow": %s}`, w))
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}

// Two users use the same names for different objects, and neither sees the other's; lists show only the caller's own.
func TestOwnersDoNotMeet(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.settle(t)
	for _, tt := range []struct{ target, body string }{
		{"/v1/sites", `{"name": "hpc", "contact": "ssh://bob@other", "batch": "fork", "root": "/srv/bobs"}`},
		{"/v1/clusters", `{"name": "default", "kind": "embedded"}`},
		{"/v1/profiles", `{"name": "mine", "sources": [{"name": "library:montage"}]}`},
		{"/v1/glideins", `{"site": "hpc", "hosts": 1, "cpus": 1, "walltime_s": 600}`},
	} {
		if rec := g.as(t, "bob", http.MethodPost, tt.target, tt.body); rec.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", tt.target, rec.Code, rec.Body)
		}
	}
	owners := func(who, target string) (owners []string) {
		t.Helper()
		var list api.List[struct{ Owner string }]
		rec := g.as(t, who, http.MethodGet, target, "")
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", target, rec.Code, rec.Body)
		}
		for _, o := range list.Items {
			owners = append(owners, o.Owner)
		}
		return owners
	}
	for _, noun := range []string{"sites", "clusters", "profiles", "glideins"} {
		for who, want := range map[string][]string{"ann": {"ann"}, "bob": {"bob"}, "root": {"ann", "bob"}} {
			if diff := cmp.Diff(want, owners(who, "/v1/"+noun)); diff != "" {
				t.Errorf("%s of %s: %s", noun, who, diff)
			}
		}
	}
	if got := owners("bob", "/v1/runs"); got != nil {
		t.Errorf("bob sees runs of %q", got)
	}
	for who, want := range map[string][]string{"ann": {"ann"}, "bob": {"bob"}, "root": {"ann", "bob"}} {
		if diff := cmp.Diff(want, told(g.as(t, who, http.MethodGet, "/v1/events?after=1", "").Body.String())); diff != "" {
			t.Errorf("events of %s: %s", who, diff)
		}
	}
	var site corral.Site
	rec := g.as(t, "bob", http.MethodGet, "/v1/sites/hpc", "")
	if err := json.Unmarshal(rec.Body.Bytes(), &site); err != nil || site.Owner != "bob" {
		t.Errorf("bob's hpc is %s", rec.Body)
	}
	if rec := g.as(t, "root", http.MethodDelete, "/v1/sites/hpc", ""); rec.Code != http.StatusConflict {
		t.Errorf("of two sites called hpc root removes one: %d %s", rec.Code, rec.Body)
	}
	// One user's objects do not restrict another's.
	if rec := g.as(t, "bob", http.MethodGet, "/v1/glideins?site=1", ""); rec.Code != http.StatusNotFound {
		t.Errorf("by ann's site bob's list is narrowed: %d %s", rec.Code, rec.Body)
	}
	if rec := g.as(t, "bob", http.MethodPost, "/v1/glideins", `{"site": "1", "hosts": 1, "cpus": 1, "walltime_s": 600}`); rec.Code != http.StatusNotFound {
		t.Errorf("at ann's site bob gets a glidein: %d %s", rec.Code, rec.Body)
	}
}

// told returns the owners of the objects in a stream of events.
func told(events string) (owners []string) {
	for _, m := range regexp.MustCompile(`"owner":"([a-z]+)"`).FindAllStringSubmatch(events, -1) {
		owners = append(owners, m[1])
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// An idempotency key belongs to its user: another user's request with the same key is executed and does not get the
// stored answer.
func TestKeysOfUsersDoNotMeet(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	for _, who := range []string{"ann", "bob"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/clusters", strings.NewReader(`{"name": "c", "kind": "embedded"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", g.texts[who])
		r.Header.Set(api.KeyHeader, "k")
		rec := httptest.NewRecorder()
		g.door.ServeHTTP(rec, r)
		if !strings.Contains(rec.Body.String(), `"owner":"`+who+`"`) {
			t.Errorf("%s: %d %s", who, rec.Code, rec.Body)
		}
	}
}

// A user can neither answer the questions of another's login nor cancel it.
func TestLoginsAreTheirUsers(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.login = asks
	rec := g.as(t, "ann", http.MethodPost, "/v1/logins", `{"contact": "ssh://ann@hpc"}`)
	var begun api.Login
	if err := json.Unmarshal(rec.Body.Bytes(), &begun); err != nil || begun.Session == "" {
		t.Fatal(rec.Code, rec.Body)
	}
	for _, more := range []string{`"answers": ["open"]`, `"cancel": true`} {
		body := fmt.Sprintf(`{"session": %q, %s}`, begun.Session, more)
		for _, who := range []string{"bob", "root"} {
			if rec := g.as(t, who, http.MethodPost, "/v1/logins", body); rec.Code != http.StatusNotFound {
				t.Errorf("%s sends %s: %d %s", who, body, rec.Code, rec.Body)
			}
		}
	}
	rec = g.as(t, "ann", http.MethodPost, "/v1/logins", fmt.Sprintf(`{"session": %q, "answers": ["open"]}`, begun.Session))
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "Second factor") {
		t.Errorf("ann's answer: %d %s", rec.Code, rec.Body)
	}
}

// A connection opened with one user's credentials is not available to another user with the same contact.
func TestConnectionsAreTheirUsers(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.login = func(context.Context, gridsite.Asker) error { return nil }
	if rec := g.as(t, "ann", http.MethodPost, "/v1/logins", `{"contact": "ssh://ann@hpc"}`); rec.Code != http.StatusOK {
		t.Fatal(rec.Code, rec.Body)
	}
	dialled := g.dialled()
	for who, want := range map[string]int{"bob": dialled["bob"] + 1, "ann": dialled["ann"]} {
		body := fmt.Sprintf(`{"name": "hpc", "contact": "ssh://ann@hpc", "batch": "fork", "root": "/srv/%s"}`, who)
		if rec := g.as(t, who, http.MethodPost, "/v1/sites", body); rec.Code != http.StatusCreated {
			t.Fatal(who, rec.Code, rec.Body)
		}
		if got := g.dialled()[who]; got != want {
			t.Errorf("%s's connections: %d, want %d", who, got, want)
		}
	}
}

// Each owner has a separate key, which stays the same.
func TestSSHKeys(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	keys := map[string]string{}
	for _, who := range []string{"ann", "bob", "ann"} {
		rec := g.as(t, who, http.MethodPut, "/v1/ssh-key", "")
		var key api.SSHKey
		if err := json.Unmarshal(rec.Body.Bytes(), &key); err != nil || !strings.HasPrefix(key.PublicKey, "ssh-ed25519 ") {
			t.Fatalf("%s: %d %s", who, rec.Code, rec.Body)
		}
		if old, ok := keys[who]; ok && old != key.PublicKey {
			t.Errorf("%s's key has changed", who)
		}
		keys[who] = key.PublicKey
	}
	if keys["ann"] == keys["bob"] || !strings.HasSuffix(keys["bob"], " corral-bob") {
		t.Errorf("keys %q", keys)
	}
}

// A token cannot create tokens with more rights, and its owner can revoke a stolen one.
func TestTokens(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	digest := func() string { return api.TokenDigest(api.NewTokenText()) }
	for _, tt := range []struct {
		who, body string
		status    int
		place     string
	}{
		{"ann", fmt.Sprintf(`{"name": "a", "digest": %q}`, digest()), 201, ""},
		{"ann", fmt.Sprintf(`{"name": "a", "digest": %q}`, digest()), 409, "name"},
		{"bob", fmt.Sprintf(`{"name": "a", "digest": %q}`, digest()), 201, ""},
		{"ann", fmt.Sprintf(`{"name": "b", "digest": %q, "owner": "bob"}`, digest()), 403, "owner"},
		{"ann", fmt.Sprintf(`{"name": "b", "digest": %q, "role": "administrator"}`, digest()), 403, "role"},
		{"ann", fmt.Sprintf(`{"name": "b", "digest": %q, "grants": ["local"]}`, digest()), 403, "grants"},
		{"root", fmt.Sprintf(`{"name": "b", "digest": %q, "owner": "cat", "grants": ["local"], "scopes": ["runs:read"]}`, digest()), 201, ""},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "owner": "local"}`, digest()), 400, "owner"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "owner": "../x"}`, digest()), 400, "owner"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "scopes": ["all"]}`, digest()), 400, "scopes"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "scopes": ["runs", "runs"]}`, digest()), 400, "scopes"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "grants": ["sudo"]}`, digest()), 400, "grants"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "role": "king"}`, digest()), 400, "role"},
		{"root", `{"name": "c", "digest": "sha256:00"}`, 400, "digest"},
		{"root", fmt.Sprintf(`{"name": "c", "digest": %q, "expires_in_s": -1}`, digest()), 400, "expires_in_s"},
	} {
		rec := g.as(t, tt.who, http.MethodPost, "/v1/tokens", tt.body)
		if rec.Code != tt.status || tt.status > 201 && problemIn(t, rec).Place != tt.place {
			t.Errorf("%s: %s: %d %s, want %d at %q", tt.who, tt.body, rec.Code, rec.Body, tt.status, tt.place)
		}
	}
	if rec := g.as(t, "ann", http.MethodDelete, "/v1/tokens/1", ""); rec.Code != http.StatusOK {
		t.Errorf("ann's revocation: %d %s", rec.Code, rec.Body)
	}
	if rec := g.as(t, "ann", http.MethodGet, "/v1/tokens", ""); rec.Code != http.StatusUnauthorized {
		t.Errorf("after it: %d %s", rec.Code, rec.Body)
	}
	for _, text := range g.texts { // neither the log nor the database contains one
		if _, secret, ok := strings.Cut(text, "corral_"); ok && strings.Contains(g.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
}

// Each change has an audit line with the actor and the action, even if it is refused; reads have none.
func TestAudit(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	for _, who := range those {
		g.as(t, who, http.MethodGet, "/v1/clusters", "")
		g.as(t, who, http.MethodPost, "/v1/clusters", `{"name": "c", "kind": "embedded"}`)
	}
	g.as(t, "ann", http.MethodPost, "/v1/packages", `{"source": "/x"}`)
	var got []string
	for line := range strings.Lines(g.log.String()) {
		for _, want := range []string{"status=401", `"status":401`, "status=201", "status=403", `"status":403`} {
			if strings.Contains(line, want) {
				got = append(got, strings.Trim(want[len("status="):], `":=`))
			}
		}
		if strings.Contains(line, "GET") {
			t.Errorf("reading is logged: %s", line)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"201", "201", "201", "401", "401", "401", "401", "401", "403"}, got); diff != "" {
		t.Errorf("audit lines: %s\n%s", diff, g.log)
	}
	if !strings.Contains(g.log.String(), "actor=bob token=") {
		t.Errorf("no line says who: %s", g.log)
	}
}
