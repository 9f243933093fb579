package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/central"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A purview describes an operation's result for callers with a valid token: the user bob, the user ann, who owns the
// object, and the administrator root. Without a valid token, all operations but open ones are unauthenticated.
type purview string

const (
	open     purview = "open"     // for everyone, without a token
	anybodys purview = "anybodys" // a list of the caller's own objects, or a new object
	anns     purview = "anns"     // about one of ann's objects
	annsOnly purview = "annsOnly" // about one of ann's objects, which not even root may use
	shared   purview = "shared"   // readable by everyone
	roots    purview = "roots"    // for administrators
)

// expected :: purview → verdicts for bob, ann and root.
var expected = map[purview][3]access.Verdict{
	open:     {access.Allowed, access.Allowed, access.Allowed},
	anybodys: {access.Allowed, access.Allowed, access.Allowed},
	anns:     {access.Hidden, access.Allowed, access.Allowed},
	annsOnly: {access.Hidden, access.Allowed, access.Forbidden},
	shared:   {access.Allowed, access.Allowed, access.Allowed},
	roots:    {access.Forbidden, access.Forbidden, access.Allowed},
}

// asked :: operation of openapi.yaml → its purview and the body of its request. Objects in paths are ann's, and
// packages and mirrors are shared; all have the id 1. An operation that is missing here fails the test.
var asked = map[string]struct {
	reach purview
	body  string
}{
	"healthz": {open, ""}, "readyz": {open, ""}, "openapi": {open, ""},
	"metrics": {roots, ""}, "events": {anybodys, ""}, "usage": {anybodys, ""},

	"listSites":  {anybodys, ""},
	"createSite": {anybodys, `{"name": "new", "contact": "ssh://me@new.example", "batch": "fork", "root": "/srv/new"}`},
	"getSite":    {anns, ""}, "setSite": {anns, `{"max_queued": 3}`}, "removeSite": {anns, ""}, "probeSite": {anns, "{}"},
	"forgiveSite": {anns, "{}"}, "siteHistory": {anns, ""}, "siteTimeline": {anns, ""}, "siteWaits": {anns, ""},
	"siteLedger": {anns, ""}, "siteEachWait": {anns, ""},
	"siteBacklog": {anns, ""}, "siteOrphans": {anns, ""}, "settleOrphans": {anns, `{"do": "cancel"}`},
	"login": {annsOnly, `{"site": "1"}`},

	"listGlideins":  {anybodys, ""},
	"createGlidein": {annsOnly, `{"site": "1", "cluster": "1", "hosts": 1, "cpus": 1, "walltime_s": 600}`},
	"getGlidein":    {anns, ""}, "removeGlidein": {anns, ""}, "glideinHistory": {anns, ""}, "glideinTimeline": {anns, ""},
	"glideinLog": {anns, ""},

	"listClusters": {anybodys, ""}, "createCluster": {anybodys, `{"name": "new", "kind": "embedded"}`},
	"getCluster": {anns, ""}, "removeCluster": {anns, ""}, "startCluster": {anns, "{}"}, "stopCluster": {anns, ""},
	"clusterEnv": {anns, ""}, "clusterHistory": {anns, ""}, "clusterWorkers": {anns, ""}, "clusterScale": {anns, ""},
	"scaleCluster":   {annsOnly, `{"sites": ["1"], "max_cpus": 4, "cpus": 1, "walltime_s": 600}`},
	"unscaleCluster": {anns, ""},

	"listPackages": {shared, ""}, "getPackage": {shared, ""}, "packageHistory": {shared, ""},
	"importPackage": {roots, `{"source": "/nowhere/p.tar.gz"}`}, "removePackage": {roots, ""}, "verifyPackage": {roots, ""},
	"listMirrors": {shared, ""}, "getMirror": {shared, ""}, "mirrorHistory": {shared, ""},
	"addMirror":    {roots, `{"name": "new", "url": "file:///srv/new"}`},
	"removeMirror": {roots, ""}, "checkMirror": {roots, ""},

	"listPlans":     {anybodys, ""},
	"createPlan":    {annsOnly, `{"cluster": "1", "default_runtime_s": 60, "workflow": ` + chain + `, "goal": {}}`},
	"listEnsembles": {anybodys, ""}, "getEnsemble": {anns, ""}, "cancelEnsemble": {anns, ""}, "removeEnsemble": {anns, ""},
	"ensembleHistory": {anns, ""},
	"createEnsemble": {annsOnly, `{"name": "night", "site": "1", "cluster": "1", "budget": {"amount": 1, "unit": "ch"}, ` +
		`"deadline_s": 600, "default_runtime_s": 60, "workflows": [{"workflow_name": "a", "workflow": ` + chain + `}]}`},
	"getPlan": {anns, ""}, "removePlan": {anns, ""}, "provisionPlan": {anns, ""}, "releasePlan": {anns, ""},
	"planSchedule": {anns, ""}, "planRevisions": {anns, ""}, "planHistory": {anns, ""},

	"listProfiles": {anybodys, ""},
	"saveProfile":  {anybodys, `{"name": "new", "sources": [{"name": "library:montage"}]}`},
	"getProfile":   {anns, ""}, "removeProfile": {anns, ""}, "profileHistory": {anns, ""},

	"listRuns":  {anybodys, ""},
	"createRun": {annsOnly, `{"cluster": "1", "workflow_name": "w", "source_dir": "", "options": {}, "workflow": ` + chain + `}`},
	"dryRun":    {annsOnly, `{"cluster": "1", "workflow_name": "w", "source_dir": "", "options": {}, "workflow": ` + chain + `}`},
	"getRun":    {anns, ""}, "removeRun": {anns, ""}, "cancelRun": {anns, ""}, "resumeRun": {anns, ""}, "closeRun": {anns, ""},
	"runHistory": {anns, ""}, "runWorkflow": {anns, ""}, "listTasks": {anns, ""}, "addTask": {anns, `{"argv": ["true"], "cpus": 1}`},
	"runDisk": {anns, ""}, "retryTasks": {anns, `{"tasks": ["b"]}`}, "cancelTasks": {anns, `{"tasks": ["b"]}`},
	"runProfile": {anns, ""}, "runOutput": {anns, "{}"}, "taskLog": {anns, ""},

	"listTokens": {anybodys, ""}, "createToken": {anybodys, ""}, "getToken": {anns, ""}, "revokeToken": {anns, ""},
	"tokenHistory": {anns, ""}, "sshKey": {anybodys, ""},

	"listOwners": {roots, ""}, "getOwner": {roots, ""}, "ownerHistory": {roots, ""}, "suspendOwner": {roots, "{}"},
	"resumeOwner": {roots, "{}"}, "endOwner": {roots, "{}"},
}

// A throng is a server behind its door, and its callers.
type throng struct {
	*fixture
	door  http.Handler
	texts map[string]string // caller → their token
}

// those are the callers; the last three have valid tokens.
var those = []string{"nobody", "garbage", "unknown", "expired", "revoked", "bob", "ann", "root"}

func newThrong(t testing.TB, limits access.Limits) *throng {
	t.Helper()
	f := start(t)
	g := &throng{fixture: f, texts: map[string]string{"nobody": "", "garbage": "Bearer me", "unknown": "Bearer " + api.NewTokenText()}}
	g.door = central.NewDoor(checked(t, f.server), f.db, slog.New(slog.NewJSONHandler(f.log, nil)), limits)
	g.token(t, "ann", corral.Token{Role: corral.RoleUser}) // the first one has the id 1
	g.token(t, "bob", corral.Token{Role: corral.RoleUser})
	g.token(t, "root", corral.Token{Role: corral.RoleAdministrator})
	g.token(t, "expired", corral.Token{Role: corral.RoleAdministrator, ExpiresAt: time.Now().Add(-time.Hour)})
	revoked := g.token(t, "revoked", corral.Token{Role: corral.RoleAdministrator})
	f.write(t, func(tx *store.Tx) error { return store.Done(tx.RevokeToken(revoked.ID, "stolen")) })
	return g
}

// token creates a caller's token, which is complete except for its owner, name and text.
func (g *throng) token(t testing.TB, who string, k corral.Token) corral.Token {
	t.Helper()
	text := api.NewTokenText()
	g.texts[who] = "Bearer " + text
	owner, _, _ := strings.Cut(who, " ")
	k.Owner, k.Name, k.Digest = owner, strings.ReplaceAll(who, " ", "-"), api.TokenDigest(text)
	g.write(t, func(tx *store.Tx) (err error) {
		k, err = tx.CreateToken(k)
		return err
	})
	return k
}

// as sends a request as a caller.
func (g *throng) as(t testing.TB, who, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if text := g.texts[who]; text != "" {
		r.Header.Set("Authorization", text)
	}
	rec := httptest.NewRecorder()
	g.door.ServeHTTP(rec, r)
	return rec
}

// settle creates one object of each kind that ann owns, and a package and a mirror, all with the id 1.
func (g *throng) settle(t testing.TB) {
	t.Helper()
	post := func(who, target, body string) {
		t.Helper()
		if rec := g.as(t, who, http.MethodPost, target, body); rec.Code != http.StatusCreated {
			t.Fatalf("%s: POST %s answered %d %s", who, target, rec.Code, rec.Body)
		}
	}
	post("ann", "/v1/sites", `{"name": "hpc", "contact": "ssh://ann@hpc", "batch": "fork", "root": "/srv/hpc"}`)
	post("ann", "/v1/clusters", `{"name": "default", "kind": "embedded"}`)
	g.write(t, func(tx *store.Tx) error {
		if _, err := tx.MoveSite(1, corral.SiteStage, ""); err != nil {
			return err
		}
		return store.Done(tx.MoveSite(1, corral.SiteStaged, ""))
	})
	post("ann", "/v1/glideins", `{"site": "hpc", "hosts": 1, "cpus": 1, "walltime_s": 600}`)
	post("ann", "/v1/plans", `{"default_runtime_s": 60, "workflow": `+chain+`, "goal": {}}`)
	g.write(t, func(tx *store.Tx) error { // its site has no pilots yet
		return store.Done(tx.CreateEnsemble(record.Ensemble{Name: "night", Owner: "ann", Cluster: 1, Files: "x", Pilots: record.Pilots{Site: "hpc", SiteID: 1},
			Choice: []byte("{}"), Progress: record.Progress{Members: []record.Member{{Standing: record.Waiting}}}}))
	})
	post("ann", "/v1/profiles", `{"name": "mine", "sources": [{"name": "library:montage"}]}`)
	post("ann", "/v1/runs", `{"workflow_name": "w", "source_dir": "", "options": {}, "workflow": `+chain+`}`)
	post("root", "/v1/packages", fmt.Sprintf(`{"source": %q, "sign": true}`, filepath.Join(g.shelf.dir, "worker.tar.gz")))
	post("root", "/v1/mirrors", fmt.Sprintf(`{"name": "m", "url": %q}`, "file://"+g.shelf.mirror.Dir))
}

// named lists the places that refer to objects, in a path or in a request for a new object.
var named = []string{"site", "cluster", "id", "run_id", "profile", "sites", "package", "mirror"}

// verdictOf returns the verdict that an answer implies.
func verdictOf(t *testing.T, rec *httptest.ResponseRecorder) access.Verdict {
	t.Helper()
	switch rec.Code {
	case http.StatusUnauthorized:
		if rec.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("401 without WWW-Authenticate")
		}
		return access.Unauthenticated
	case http.StatusForbidden:
		return access.Forbidden
	case http.StatusNotFound:
		if p := problemIn(t, rec); slices.Contains(named, p.Place) && !strings.Contains(p.Detail, "it is not scaled") {
			return access.Hidden
		}
	}
	return access.Allowed
}

// Every operation of openapi.yaml, for all kinds of callers: no token, three invalid ones, another user, the owner of
// the object, and an administrator.
func TestRolesAndVerbs(t *testing.T) {
	t.Parallel()
	unasked := map[string]bool{}
	for id := range asked {
		unasked[id] = true
	}
	for path, item := range openAPIDoc(t).Paths.Map() {
		for method, operation := range item.Operations() {
			id := operation.OperationID
			delete(unasked, id)
			target := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "1")
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				tryRoles(t, id, method, target)
			})
		}
	}
	for id := range unasked {
		t.Errorf("openapi.yaml has no operation %s", id)
	}
}

func tryRoles(t *testing.T, id, method, target string) {
	how, ok := asked[id]
	if !ok {
		t.Fatalf("say in the table asked who may do %s", id)
	}
	g := newThrong(t, access.Limits{})
	g.login = asks
	g.settle(t)
	for i, who := range those {
		body := how.body
		if id == "createToken" { // each text belongs to one token
			body = fmt.Sprintf(`{"name": "new", "digest": %q}`, api.TokenDigest(api.NewTokenText()))
		}
		want := access.Unauthenticated
		switch {
		case how.reach == open:
			want = access.Allowed
		case i >= len(those)-3:
			want = expected[how.reach][i-(len(those)-3)]
		}
		rec := g.as(t, who, method, target, body)
		if got := verdictOf(t, rec); got != want {
			t.Errorf("%s: %s (%d %s), want %s", who, got, rec.Code, rec.Body, want)
		}
		if want != access.Allowed && rec.Code < http.StatusBadRequest {
			t.Errorf("%s: %d", who, rec.Code)
		}
	}
}
