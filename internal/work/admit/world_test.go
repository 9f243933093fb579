package admit_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// machine describes this machine in all tests.
var machine = corral.SiteQueue{CPUs: 4, MemoryMiB: 4096}

// digestOf returns the n-th digest.
func digestOf(n int) string { return fmt.Sprintf("sha256:%064x", n) }

// A home is a site and a cluster of one owner, for which objects are requested. A poor home cannot satisfy requests.
type home struct {
	site    corral.Site
	cluster corral.Cluster
	poor    bool
}

// A world is a database in which each owner has a home.
type world struct {
	*testing.T
	db    *store.DB
	homes map[string]home // :: owner
}

func newWorld(t *testing.T, most access.Most) *world {
	t.Helper()
	w := &world{T: t, db: storetest.OpenTest(t), homes: map[string]home{}}
	w.db.Limit(most)
	for _, owner := range []string{"ann", "bob", access.LocalName} {
		w.write(func(tx *store.Tx) (err error) { w.homes[owner], err = newHome(tx, owner, "home"); return err })
	}
	return w
}

// newHome creates a READY site and a cluster, both with the given name.
func newHome(tx *store.Tx, owner, name string) (h home, err error) {
	if h.site, err = tx.CreateSite(newSite(owner, name)); err != nil {
		return h, err
	}
	for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
		if h.site, err = tx.MoveSite(h.site.ID, move, ""); err != nil {
			return h, err
		}
	}
	h.cluster, err = tx.CreateCluster(newCluster(owner, name))
	return h, err
}

func newSite(owner, name string) corral.Site {
	return corral.Site{Name: name, Owner: owner, Contact: "local:", Batch: corral.ForkBatch, Root: "/srv/" + owner + "/" + name}
}

func newCluster(owner, name string) corral.Cluster {
	return corral.Cluster{Name: name, Owner: owner, Kind: corral.Embedded}
}

// poor returns ann's home whose cluster has been removed.
func (w *world) poor() home {
	w.Helper()
	var h home
	w.write(func(tx *store.Tx) (err error) {
		if h, err = newHome(tx, "ann", "poor"); err == nil {
			h.cluster, err = tx.RemoveCluster(h.cluster.ID, "")
		}
		h.poor = true
		return err
	})
	return h
}

func (w *world) write(fn func(*store.Tx) error) {
	w.Helper()
	if err := w.try(fn); err != nil {
		w.Fatal(err)
	}
}

// try runs a transaction as an administrator, who sees the rows of all owners.
func (w *world) try(fn func(*store.Tx) error) error {
	return storetest.All(w.db).Write(w.Context(), "ann", fn)
}

// refused fails the test unless fn returns an error of the given kind at the given place and writes nothing, although
// its transaction is committed.
func (w *world) refused(what string, kind corral.Kind, place string, fn func(*store.Tx) error) {
	w.Helper()
	before := w.rows()
	var err error
	w.write(func(tx *store.Tx) error { err = fn(tx); return nil })
	var at string
	if e, ok := err.(*corral.Error); ok {
		at = e.Place
	}
	if corral.KindOf(err) != kind || at != place {
		w.Errorf("%s: refused with %v (%s at %q), want %s at %q", what, err, corral.KindOf(err), at, kind, place)
	}
	if after := w.rows(); !maps.Equal(before, after) {
		w.Errorf("%s: refused, and there are %v rows now; before %v", what, after, before)
	}
}

// rows counts the rows of each table, except the cached sums of spent amounts.
func (w *world) rows() map[string]int {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: storetest.Path(w.db)}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	var tables string
	err = db.QueryRowContext(w.Context(), "select json_group_array(name) from sqlite_master where type = 'table' and name not like 'spending%'").Scan(&tables)
	var names []string
	if err == nil {
		err = json.Unmarshal([]byte(tables), &names)
	}
	counts := map[string]int{}
	for _, name := range names {
		var n int
		if err == nil {
			err = db.QueryRowContext(w.Context(), "select count(*) from "+name).Scan(&n)
		}
		counts[name] = n
	}
	if err != nil {
		w.Fatal(err)
	}
	return counts
}

// A noun is a kind of object that may be requested.
type noun struct {
	quotas   []string
	site     string // place of errors about its site; "": it does not name one
	cluster  string // place of errors about its cluster
	poverty  corral.Kind
	poorAt   string
	hasNames bool // its name must be unique
	create   func(tx *store.Tx, owner string, at home, n int) error
}

// nouns lists all nouns that have an owner. create requests the n-th object of an owner at a home, which may belong to
// another owner.
var nouns = map[string]noun{
	"site": {quotas: []string{"sites"}, poverty: corral.Conflict, poorAt: "root", hasNames: true,
		create: func(tx *store.Tx, owner string, at home, n int) error {
			s := newSite(owner, fmt.Sprint("s", n))
			if at.poor {
				s.Root = at.site.Root + "/below"
			}
			return store.Done(admit.Site(tx, s))
		}},
	"cluster": {quotas: []string{"clusters"}, hasNames: true,
		create: func(tx *store.Tx, owner string, _ home, n int) error {
			return store.Done(admit.Cluster(tx, newCluster(owner, fmt.Sprint("c", n))))
		}},
	"glidein": {quotas: []string{"glideins"}, site: "site", cluster: "cluster", poverty: corral.Unsatisfiable, poorAt: "cpus",
		create: func(tx *store.Tx, owner string, at home, _ int) error {
			return store.Done(admit.Glidein(tx, newPilot(owner, at)))
		}},
	"run": {quotas: []string{"runs-open", "runs"}, cluster: "cluster", poverty: corral.Conflict, hasNames: true,
		create: func(tx *store.Tx, owner string, at home, n int) error {
			return store.Done(admit.Run(tx, newRun(owner, at, n)))
		}},
	"plan": {quotas: []string{"plans"}, site: "site", cluster: "cluster", poverty: corral.Conflict,
		create: func(tx *store.Tx, owner string, at home, _ int) error {
			return store.Done(admit.Plan(tx, newPlan(owner, at)))
		}},
	"ensemble": {quotas: []string{"ensembles"}, site: "site", cluster: "cluster", poverty: corral.Conflict,
		create: func(tx *store.Tx, owner string, at home, n int) error {
			return store.Done(admit.Ensemble(tx, newEnsemble(owner, at, n)))
		}},
	"scale": {site: "sites", cluster: "cluster", poverty: corral.Conflict,
		create: func(tx *store.Tx, owner string, at home, _ int) error {
			return store.Done(admit.Scale(tx, newScale(owner, at)))
		}},
	"profile": {quotas: []string{"profiles"}, hasNames: true,
		create: func(tx *store.Tx, owner string, _ home, n int) error {
			p := corral.Profile{Owner: owner, Name: fmt.Sprint("p", n), Sources: []string{"run:1"}, Runs: 1, Kinds: 2, Tasks: 30,
				Digest: digestOf(0), Document: json.RawMessage(`{"version":1}`)}
			return store.Done(admit.Profile(tx, p, ""))
		}},
	"token": {quotas: []string{"tokens"}, hasNames: true,
		create: func(tx *store.Tx, owner string, _ home, n int) error {
			t := corral.Token{Owner: owner, Name: fmt.Sprint("t", n), Role: corral.RoleUser, Digest: api.TokenDigest(fmt.Sprint(owner, n))}
			return store.Done(admit.Token(tx, access.Local, t))
		}},
	"package": {hasNames: true,
		create: func(tx *store.Tx, owner string, _ home, n int) error {
			return store.Done(admit.Package(tx, newPackage(owner, n)))
		}},
	"mirror": {hasNames: true,
		create: func(tx *store.Tx, owner string, _ home, n int) error {
			return store.Done(admit.Mirror(tx, corral.Mirror{Owner: owner, Name: fmt.Sprint("m", owner, n), URL: fmt.Sprint("https://", owner, n)}))
		}},
}

func newPilot(owner string, at home) admit.GlideinRequest {
	p := admit.GlideinRequest{Owner: owner, Site: at.site, Cluster: at.cluster, Machine: machine,
		Request: api.NewGlidein{Site: at.site.Name,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}}}
	if at.poor {
		p.Request.CPUs = machine.CPUs + 1
	}
	return p
}

func newRun(owner string, at home, n int) corral.Run {
	return corral.Run{Owner: owner, Cluster: at.cluster.ID, Workflow: "w", Dir: fmt.Sprint("/runs/", owner, n)}
}

func newPlan(owner string, at home) corral.Plan {
	return corral.Plan{Owner: owner, Cluster: at.cluster.ID, Workflow: "w", Sites: map[string]corral.SiteID{"home": at.site.ID},
		Digest: digestOf(0), State: corral.PlanReady, Document: json.RawMessage(`{"pilots": [{}]}`)}
}

// newEnsemble returns the n-th ensemble. All but the first are requested on the cluster that runs the first one.
func newEnsemble(owner string, at home, n int) record.Ensemble {
	return record.Ensemble{Name: "night", Owner: owner, Cluster: at.cluster.ID, Files: fmt.Sprint(owner, n), Choice: json.RawMessage("{}"),
		Pilots:   record.Pilots{Site: "home", SiteID: at.site.ID},
		Progress: record.Progress{Members: []record.Member{{Workflow: "w", Standing: record.Waiting}}}}
}

func newScale(owner string, at home) admit.NewScale {
	return admit.NewScale{
		Terms:   corral.Scale{Owner: owner, Max: 4, CPUs: 1, Walltime: corral.Seconds(time.Hour), Idle: corral.Seconds(time.Minute)},
		Cluster: at.cluster, Sites: []corral.Site{at.site}, Machine: machine,
		Worker: func(s corral.Scale, site string) api.NewGlidein {
			return api.NewGlidein{Site: site, Shape: corral.Shape{Hosts: 1, CPUs: s.CPUs, Walltime: s.Walltime}}
		},
	}
}

func newPackage(owner string, n int) corral.Package {
	return corral.Package{Name: "p-1-x86_64-linux-static", Owner: owner, What: "p", Version: "1", Digest: digestOf(n), SizeBytes: 1,
		Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}, Key: "ed25519:k", Signature: "s"}
}
