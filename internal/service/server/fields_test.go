package server_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// bodies :: type of a request's body → an empty one. A request type that is used but missing here fails
// TestFieldsThatName.
var bodies = map[string]any{
	"NewSite": api.NewSite{}, "SetSite": api.SetSite{}, "NewLogin": api.NewLogin{}, "NewForgiveness": api.NewForgiveness{},
	"NewProbe": api.NewProbe{}, "SettleOrphans": api.SettleOrphans{}, "NewGlidein": api.NewGlidein{},
	"NewCluster": api.NewCluster{}, "StartCluster": api.StartCluster{}, "NewScale": api.NewScale{},
	"NewPackage": api.NewPackage{}, "NewMirror": api.NewMirror{}, "NewPlan": api.NewPlan{}, "NewProfile": api.NewProfile{},
	"NewRun": api.NewRun{}, "NewTask": api.NewTask{}, "TaskChoice": api.TaskChoice{}, "NewEnsemble": api.NewEnsemble{},
	"NewToken": api.NewToken{}, "OutputPlace": api.OutputPlace{}, "NewOwnerState": api.NewOwnerState{},
}

// decoded lists the types of requests that handlers read: those of their parameters called in.
func decoded(t *testing.T) (types []string) {
	t.Helper()
	set := gotoken.NewFileSet()
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || len(f.Names) != 1 || f.Names[0].Name != "in" {
				return true
			}
			if star, ok := f.Type.(*ast.StarExpr); ok {
				f.Type = star.X
			}
			if s, ok := f.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "api" {
				types = append(types, s.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// measures lists types of fields that cannot refer to anything.
var measures = []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[float64](), reflect.TypeFor[corral.Seconds](), reflect.TypeFor[time.Time]()}

// fields calls found for each field of a type that is not a measure, recursively.
func fields(typ reflect.Type, at string, found func(path string)) {
	switch {
	case slices.Contains(measures, typ):
	case typ.Kind() == reflect.Pointer:
		fields(typ.Elem(), at, found)
	case typ == reflect.TypeFor[json.RawMessage]() || typ.Implements(reflect.TypeFor[json.Marshaler]()):
		found(at)
	case typ.Kind() == reflect.Slice:
		fields(typ.Elem(), at+"[]", found)
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
			case f.Anonymous && name == "":
				fields(f.Type, at, found)
			default:
				fields(f.Type, at+"."+name, found)
			}
		}
	default:
		found(at)
	}
}

// How a field refers to objects. A field of the first kinds refers to nothing that has an owner; a field of the
// others must refer to the caller's own object, which naming tests.
const (
	plain  = ""        // a word, a number or a document: it refers to nothing outside the request's own object
	fresh  = "new"     // the name of a new object; each owner has separate names
	host   = "host"    // something on corrald's host, which requires a grant (TestHostIsNotTheUsers)
	others = "others"  // tested elsewhere: logins, tokens, orphans, tasks
	site   = "site"    // name or id
	pool   = "cluster" // name or id
	runs   = "run_id"
	kept   = "profile" // a name, or run:ID
	label  = "labels"  // by which corrald finds its own requests
	root   = "root"    // a folder at a site
)

// naming :: field → how it refers to objects. A field that is missing here fails TestFieldsThatName: declare what it
// refers to, and have it tested there.
var naming = map[string]string{
	"NewCluster.name": fresh, "NewCluster.kind": plain, "NewCluster.htcondor": host, "NewCluster.address": host,
	"NewCluster.collector": host, "NewCluster.token": plain, "NewCluster.schedd": plain, "StartCluster.htcondor": host,

	"NewEnsemble.name": fresh, "NewEnsemble.cluster": pool, "NewEnsemble.site": site, "NewEnsemble.budget.amount": plain,
	"NewEnsemble.budget.unit": plain, "NewEnsemble.algorithm": plain, "NewEnsemble.pilot_cpus": plain,
	"NewEnsemble.memory_mib": plain, "NewEnsemble.most": plain, "NewEnsemble.error": plain, "NewEnsemble.seed": plain,
	"NewEnsemble.workflows[].workflow": plain, "NewEnsemble.workflows[].workflow_name": plain,
	"NewEnsemble.workflows[].source_dir": host, "NewEnsemble.workflows[].labels": label,

	"NewForgiveness.nodes[]": plain,

	"NewGlidein.site": site, "NewGlidein.cluster": pool, "NewGlidein.hosts": plain, "NewGlidein.cpus": plain,
	"NewGlidein.memory_mib": plain, "NewGlidein.gpus": plain, "NewGlidein.labels": label, "NewGlidein.resubmit": plain,
	"NewGlidein.retries": plain, "NewGlidein.broker": plain, "NewGlidein.ccb[]": plain, "NewGlidein.slots": plain,
	"NewGlidein.queue": plain, "NewGlidein.account": plain, "NewGlidein.qos": plain, "NewGlidein.constraint": plain,
	"NewGlidein.site_options[]": plain,

	"NewLogin.site": site, "NewLogin.contact": plain, "NewLogin.session": others, "NewLogin.answers[]": plain,

	"NewMirror.name": fresh, "NewMirror.url": host, "NewPackage.source": host, "NewPackage.signature": plain,

	"NewPlan.cluster": pool, "NewPlan.workflow": plain, "NewPlan.workflow_name": plain, "NewPlan.run_id": runs,
	"NewPlan.sites[]": site, "NewPlan.goal.objective": plain, "NewPlan.goal.budget.amount": plain,
	"NewPlan.goal.tradeoff": plain, "NewPlan.goal.max_peak_cpus": plain,
	"NewPlan.goal.max_pilots": plain, "NewPlan.goal.budget.unit": plain, "NewPlan.host_cpus": plain, "NewPlan.clustering": plain, "NewPlan.seed": plain,
	"NewPlan.next_run.source_dir": host, "NewPlan.next_run.dir": host,
	"NewPlan.next_run.labels": plain, // of a later run, and refused then
	"NewPlan.profiles[].name": kept, "NewPlan.profiles[].document": plain, "NewPlan.error": plain,
	"NewPlan.price": plain, "NewPlan.billing": plain, "NewPlan.algorithm": plain,

	"NewProbe.cluster": pool, "NewProfile.name": fresh, "NewProfile.sources[].name": kept,
	"NewProfile.sources[].document": plain,

	"NewRun.cluster": pool, "NewRun.workflow": plain, "NewRun.workflow_name": plain, "NewRun.source_dir": host,
	"NewRun.dir": host, "NewRun.labels": label, "NewRun.done_dir": host, "NewRun.rescue": host,

	"NewScale.sites[]": site, "NewScale.min_cpus": plain, "NewScale.max_cpus": plain, "NewScale.cpus": plain,

	"NewSite.name": fresh, "NewSite.contact": plain, "NewSite.batch": plain, "NewSite.head_batch": plain, "NewSite.root": root,
	"NewSite.max_queued": plain, "NewSite.max_running": plain, "NewSite.price": plain, "NewSite.billing": plain,
	"NewSite.allocation": plain, "NewSite.queue": plain, "NewSite.account": plain, "NewSite.qos": plain,
	"NewSite.constraint": plain, "NewSite.site_options[]": plain,
	"SetSite.queue": plain, "SetSite.account": plain, "SetSite.qos": plain, "SetSite.constraint": plain,
	"SetSite.site_options[]": plain, "SetSite.max_queued": plain, "SetSite.max_running": plain, "SetSite.price": plain,
	"SetSite.billing": plain, "SetSite.allocation": plain,

	"NewTask.name": plain, "NewTask.argv[]": plain, "NewTask.directory": plain, "NewTask.environment[]": plain,
	"NewTask.cpus": plain, "NewTask.memory_mib": plain, "NewTask.gpus": plain, "NewTask.disk_mib": plain,
	"NewTask.priority": plain, "NewTask.retries": plain, "NewTask.note": plain, "NewTask.attributes": plain,
	"NewTask.after[].task": plain, "NewTask.after[].when": plain, "NewTask.elements": plain, "NewTask.at_once": plain,
	"TaskChoice.tasks[]": plain,

	"NewToken.name": fresh, "NewToken.digest": plain, "NewToken.owner": others, "NewToken.role": plain,
	"NewToken.scopes[]": plain, "NewToken.grants[]": plain, "NewOwnerState.reason": plain,

	"OutputPlace.told[]": plain, "OutputPlace.open[].index": plain, "OutputPlace.open[].attempt": plain,
	"OutputPlace.open[].stdout_bytes": plain, "OutputPlace.open[].stderr_bytes": plain,

	"SettleOrphans.do": plain, "SettleOrphans.tags[]": others, "SettleOrphans.cluster": pool,
}

// The options of runs refer to nothing.
func init() {
	for _, of := range []string{"NewRun", "NewEnsemble", "NewPlan.next_run"} {
		for _, option := range []string{"clustering", "retries", "retry_unless", "crash_limit", "inputs", "priority", "trace"} {
			naming[of+".options."+option] = plain
		}
	}
}

// attempts :: field that refers to an object → a request of bob's with REF in its place.
var attempts = map[string]struct{ method, target, body string }{
	"NewEnsemble.cluster": {"POST", "/v1/ensembles", ensembleOf(`"site": "own", "cluster": "REF"`, "{}")},
	"NewEnsemble.site":    {"POST", "/v1/ensembles", ensembleOf(`"site": "REF", "cluster": "own"`, "{}")},
	"NewEnsemble.workflows[].labels": {"POST", "/v1/ensembles",
		ensembleOf(`"site": "own", "cluster": "own"`, `{"REF": "1"}`)},
	"NewGlidein.site":    {"POST", "/v1/glideins", `{"site": "REF", "cluster": "own", "hosts": 1, "cpus": 1, "walltime_s": 600}`},
	"NewGlidein.cluster": {"POST", "/v1/glideins", `{"site": "own", "cluster": "REF", "hosts": 1, "cpus": 1, "walltime_s": 600}`},
	"NewGlidein.labels": {"POST", "/v1/glideins",
		`{"site": "own", "cluster": "own", "hosts": 1, "cpus": 1, "walltime_s": 600, "labels": {"REF": "1"}}`},
	"NewLogin.site":   {"POST", "/v1/logins", `{"site": "REF"}`},
	"NewPlan.cluster": {"POST", "/v1/plans", `{"cluster": "REF", "sites": ["own"], "default_runtime_s": 60, "goal": {}, "workflow": ` + chain + `}`},
	"NewPlan.sites[]": {"POST", "/v1/plans", `{"cluster": "own", "sites": ["REF"], "default_runtime_s": 60, "goal": {}, "workflow": ` + chain + `}`},
	"NewPlan.run_id":  {"POST", "/v1/plans", `{"run_id": REF, "default_runtime_s": 60, "goal": {}}`},
	"NewPlan.profiles[].name": {"POST", "/v1/plans",
		`{"cluster": "own", "default_runtime_s": 60, "goal": {}, "profiles": [{"name": "REF"}], "workflow": ` + chain + `}`},
	"NewProbe.cluster":          {"POST", "/v1/sites/own/probe", `{"network": true, "cluster": "REF"}`},
	"NewProfile.sources[].name": {"POST", "/v1/profiles", `{"name": "stolen", "sources": [{"name": "REF"}]}`},
	"NewRun.cluster":            {"POST", "/v1/runs", `{"cluster": "REF", "workflow_name": "w", "options": {}, "workflow": ` + chain + `}`},
	"NewRun.labels":             {"POST", "/v1/runs", `{"cluster": "own", "workflow_name": "w", "options": {}, "labels": {"REF": "1"}, "workflow": ` + chain + `}`},
	"NewScale.sites[]":          {"PUT", "/v1/clusters/own/scale", `{"sites": ["REF"], "max_cpus": 4, "cpus": 1, "walltime_s": 600}`},
	"NewSite.root":              {"POST", "/v1/sites", `{"name": "new", "contact": "ssh://ann@hpc", "batch": "fork", "root": "REF"}`},
	"SettleOrphans.cluster":     {"POST", "/v1/sites/own/orphans", `{"do": "adopt", "cluster": "REF"}`},
}

func ensembleOf(where, labels string) string {
	return `{"name": "e", ` + where + `, "budget": {"amount": 1, "unit": "ch"}, "deadline_s": 600, "default_runtime_s": 60, ` +
		`"workflows": [{"workflow_name": "a", "labels": ` + labels + `, "workflow": ` + chain + `}]}`
}

// refs :: kind of field → how bob may try to refer to ann's objects, which all have the id 1.
var refs = map[string][]string{
	site: {"hpc", "1", "01"}, pool: {"default", "1", "01"}, runs: {"1"}, kept: {"mine", "run:1"},
	label: {"plan", "scale", "ensemble"}, root: {"/srv/hpc", "/srv", "/srv/hpc/jobs", "/srv/own/../hpc"},
}

// neighbour gives bob a site, a cluster and a profile, and removes others that he had under the names of ann's.
func (g *throng) neighbour(t *testing.T) {
	t.Helper()
	for _, name := range []string{"own", "hpc"} {
		g.want(t, "bob", "POST", "/v1/sites", fmt.Sprintf(`{"name": %q, "contact": "ssh://bob@other", "batch": "fork", "root": "/srv/bobs/%[1]s"}`, name), 201)
	}
	for _, name := range []string{"own", "default"} {
		g.want(t, "bob", "POST", "/v1/clusters", fmt.Sprintf(`{"name": %q, "kind": "embedded"}`, name), 201)
	}
	g.want(t, "bob", "POST", "/v1/profiles", `{"name": "mine", "sources": [{"name": "library:montage"}]}`, 201)
	g.want(t, "bob", "DELETE", "/v1/sites/hpc?force=true", "", 200)
	g.want(t, "bob", "DELETE", "/v1/clusters/default", "", 200)
	g.want(t, "bob", "DELETE", "/v1/profiles/mine", "", 200)
	g.write(t, func(tx *store.Tx) error {
		own, err := tx.Sites(store.Filter{})
		for _, s := range own {
			if err == nil && s.Name == "own" {
				if _, err = tx.MoveSite(s.ID, corral.SiteStage, ""); err == nil {
					_, err = tx.MoveSite(s.ID, corral.SiteStaged, "")
				}
			}
		}
		return err
	})
}

func (g *throng) want(t *testing.T, who, method, target, body string, status int) {
	t.Helper()
	if rec := g.as(t, who, method, target, body); rec.Code != status {
		t.Fatalf("%s: %s %s answered %d %s", who, method, target, rec.Code, rec.Body)
	}
}

// Each request field that can refer to an object is tried with another owner's object: by name, by id, and by a name
// that the caller's own deleted object had. The refusal reveals nothing, and no row of one owner refers to another's
// object.
func TestFieldsThatName(t *testing.T) {
	t.Parallel()
	for _, name := range decoded(t) {
		if _, ok := bodies[name]; !ok {
			t.Errorf("a request api.%s is read: put it into bodies", name)
		}
	}
	unneeded := maps.Clone(naming)
	g := newThrong(t, access.Limits{})
	g.login = asks
	g.settle(t)
	g.neighbour(t)
	for name, body := range bodies {
		fields(reflect.TypeOf(body), name, func(path string) {
			kind, ok := naming[path]
			delete(unneeded, path)
			if !ok {
				t.Errorf("say in naming what %s names", path)
			}
			for _, ref := range refs[kind] {
				g.attempt(t, path, ref)
			}
		})
	}
	for _, label := range []string{"pilot", "hedges"} { // they describe a glidein's role in a plan
		g.attempt(t, "NewGlidein.labels", label)
	}
	for path := range unneeded {
		t.Errorf("no request has the field %s", path)
	}
	storetest.CheckOwners(t, storetest.Path(g.db))
}

func (g *throng) attempt(t *testing.T, field, ref string) {
	t.Helper()
	a, ok := attempts[field]
	if !ok {
		t.Errorf("say in attempts how %s is tried", field)
		return
	}
	body := strings.ReplaceAll(a.body, "REF", ref)
	rec := g.as(t, "bob", a.method, a.target, body)
	if rec.Code < 400 || rec.Code >= 500 {
		t.Errorf("%s = %q: %d %s", field, ref, rec.Code, rec.Body)
		return
	}
	p := problemIn(t, rec)
	if strings.Contains(p.Detail, "ann") || strings.Contains(p.Detail, "owner") {
		t.Errorf("%s = %q: the refusal mentions others: %s", field, ref, p.Detail)
	}
	if !strings.HasPrefix(p.Place, strings.TrimRight(lastOf(field), "[]")) && !slices.Contains(placesOf[field], p.Place) {
		t.Errorf("%s = %q: it is refused for another reason: %s: %s", field, ref, p.Place, p.Detail)
	}
}

// lastOf returns the last component of a field's path.
func lastOf(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// placesOf :: field → the places named in refusals of it, if not the field itself.
var placesOf = map[string][]string{
	"NewPlan.profiles[].name": {"profiles"}, "NewProfile.sources[].name": {"sources"}, "NewPlan.sites[]": {"site"},
	"NewScale.sites[]": {"site"},
}

// Lists can be narrowed only by the caller's own objects.
func TestNarrowedByAnothers(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.settle(t)
	g.neighbour(t)
	for _, target := range []string{"/v1/glideins?site=hpc", "/v1/glideins?site=1", "/v1/glideins?cluster=default",
		"/v1/glideins?cluster=1", "/v1/runs?cluster=default", "/v1/runs?cluster=1"} {
		g.want(t, "bob", "GET", target, "", 404)
	}
	for _, target := range []string{"/v1/glideins?label=plan=1", "/v1/runs?label=plan=1", "/v1/runs?all=true", "/v1/glideins?all=true"} {
		if rec := g.as(t, "bob", "GET", target, ""); rec.Code != 200 || strings.Contains(rec.Body.String(), `"id"`) {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

// Two owners may share an account at a site. One owner's recorded jobs there are not orphans of the other's: they are
// neither listed nor cancelled nor adopted.
func TestOrphansAreNotAnothers(t *testing.T) {
	t.Parallel()
	g := newThrong(t, access.Limits{})
	g.settle(t)
	g.neighbour(t)
	probe := admission.NewTag(admission.ProbeJob)
	var attempt corral.Job
	g.write(t, func(tx *store.Tx) (err error) {
		if err = tx.AddProbe(1, probe); err == nil {
			attempt, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: 1, Glidein: 1, Tag: admission.NewTag(corral.PilotJob)})
		}
		return err
	})
	tags := []string{probe, attempt.Tag}
	for _, tag := range tags {
		g.far.jobs[tag] = gridsite.JobStatus{Tag: tag, Phase: gridsite.Running}
	}
	if rec := g.as(t, "bob", "GET", "/v1/sites/own/orphans", ""); rec.Code != 200 || strings.Contains(rec.Body.String(), "tag") {
		t.Errorf("bob's orphans: %d %s", rec.Code, rec.Body)
	}
	for _, body := range []string{`{"do": "cancel"}`, `{"do": "adopt", "cluster": "own"}`,
		fmt.Sprintf(`{"do": "cancel", "tags": [%q]}`, probe), fmt.Sprintf(`{"do": "cancel", "tags": [%q]}`, attempt.Tag),
		fmt.Sprintf(`{"do": "adopt", "cluster": "own", "tags": [%q]}`, attempt.Tag)} {
		rec := g.as(t, "bob", "POST", "/v1/sites/own/orphans", body)
		for _, tag := range tags {
			if g.far.jobs[tag].Phase != gridsite.Running {
				t.Fatalf("%s: %s of ann's is cancelled: %d %s", body, tag, rec.Code, rec.Body)
			}
		}
	}
	storetest.CheckOwners(t, storetest.Path(g.db))
}
