package storetest_test

import (
	"database/sql"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// settle gives an owner one object of each kind that refers to others.
func settle(tx *store.Tx, owner string) error {
	site, err := tx.CreateSite(corral.Site{Name: "hpc", Owner: owner, Contact: "local:", Batch: "fork", Root: "/srv/" + owner})
	if err != nil {
		return err
	}
	cluster, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: owner, Kind: corral.Embedded})
	if err != nil {
		return err
	}
	for _, labels := range []map[string]string{nil, {"of": owner}} {
		g, err := tx.CreateGlidein(corral.Glidein{Owner: owner, Site: site.ID, Cluster: cluster.ID,
			Shape:      corral.Shape{Hosts: 1, CPUs: 1, Walltime: 600_000_000_000},
			QueueLimit: 600_000_000_000, Labels: labels})
		if err != nil {
			return err
		}
		if _, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: owner + string(rune('a'+len(labels)))}); err != nil {
			return err
		}
	}
	run, err := tx.CreateRun(corral.Run{Owner: owner, Cluster: cluster.ID, Workflow: "w", Dir: "/srv/runs/" + owner})
	if err != nil {
		return err
	}
	_, err = tx.CreatePlan(corral.Plan{Owner: owner, Cluster: cluster.ID, Workflow: "w", Document: json.RawMessage(`{"pilots": [{}]}`),
		Digest: "sha256:" + zeros, State: corral.PlanReady})
	if err != nil {
		return err
	}
	if _, err = tx.CreateScale(corral.Scale{Cluster: cluster.ID, Owner: owner, SiteIDs: []corral.SiteID{site.ID}, Max: 1, CPUs: 1,
		Walltime: 600_000_000_000, Idle: 60_000_000_000}); err != nil {
		return err
	}
	_, err = tx.CreateEnsemble(record.Ensemble{Name: "night", Owner: owner, Cluster: cluster.ID, Files: owner, Choice: []byte("{}"), Pilots: record.Pilots{Site: "hpc", SiteID: site.ID},
		Progress: record.Progress{Members: []record.Member{{Standing: record.Begun, Run: run.ID}}}})
	return err
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// Exactly the references to another owner's objects are found. Ann's objects have odd ids, except glideins and jobs,
// of which hers are 1 and 2.
func TestStrangers(t *testing.T) {
	t.Parallel()
	db := storetest.OpenTest(t)
	for _, owner := range []string{"ann", "bob"} {
		if err := storetest.All(db).Write(t.Context(), owner, func(tx *store.Tx) error { return settle(tx, owner) }); err != nil {
			t.Fatal(err)
		}
	}
	path := storetest.Path(db)
	storetest.CheckOwners(t, path)
	for change, want := range map[string]string{
		"update glideins set site_id = 2 where id = 1":                                                         "glideins 1 of ann, site_id: sites 2 of bob",
		"update glideins set cluster_id = 2 where id = 1":                                                      "glideins 1 of ann, cluster_id: clusters 2 of bob",
		"update glideins set follows_id = 3 where id = 2":                                                      "glideins 2 of ann, follows_id: glideins 3 of bob",
		`update glideins set labels = '{"plan": "2"}' where id = 1`:                                            "glideins 1 of ann, label plan: plans 2 of bob",
		`update glideins set labels = '{"scale": "2"}' where id = 1`:                                           "glideins 1 of ann, label scale: clusters 2 of bob",
		`update glideins set labels = '{"ensemble": "2"}' where id = 1`:                                        "glideins 1 of ann, label ensemble: ensembles 2 of bob",
		"update jobs set site_id = 2 where id = 1":                                                             "jobs 1 of bob, glidein_id: glideins 1 of ann",
		"update runs set cluster_id = 2 where id = 1":                                                          "runs 1 of ann, cluster_id: clusters 2 of bob",
		`update runs set labels = '{"plan": "2"}' where id = 1`:                                                "runs 1 of ann, label plan: plans 2 of bob",
		"update plans set cluster_id = 2 where id = 1":                                                         "plans 1 of ann, cluster_id: clusters 2 of bob",
		`update plans set document = '{"pilots": [{"site_id": 2}]}' where id=1`:                                "plans 1 of ann, document site_id: sites 2 of bob",
		"update scales set owner = 'bob' where id = 1":                                                         "scales 1 of bob, id: clusters 1 of ann",
		"update scales set sites = '[2]' where id = 1":                                                         "scales 1 of ann, sites: sites 2 of bob",
		"update ensembles set cluster_id = 2 where id = 1":                                                     "ensembles 1 of ann, cluster_id: clusters 2 of bob",
		`update ensembles set members = '[{"run_id": 2}]' where id = 1`:                                        "ensembles 1 of ann, members run_id: runs 2 of bob",
		`update ensembles set pilots = '{"site_id": 2}' where id = 1`:                                          "ensembles 1 of ann, pilots site_id: sites 2 of bob",
		"insert into reservations (glidein_id, amount) values (3, 5)":                                          "",
		"insert into spendings (site_id, plan_id, used, billed, used_ms, billed_ms) values (1, 2, 0, 0, 0, 0)": "spendings 1 2 of ann, plan_id: plans 2 of bob",
		"insert into spendings (site_id, plan_id, used, billed, used_ms, billed_ms) values (1, 0, 0, 0, 0, 0)": "",
		"insert into usage (run_id, job_id, hour, used_ms, lost_ms) values (1, 3, 7, 0, 0)":                    "usage 1 3 7 of ann, job_id: jobs 3 of bob",
		"insert into pool_tokens (id, cluster_id, job_id, ends_at_ms) values ('x', 1, 3, 0)":                   "pool_tokens x of ann, job_id: jobs 3 of bob",
	} {
		changed := filepath.Join(t.TempDir(), "changed.db")
		do(t, path, "vacuum into '"+changed+"'")
		do(t, changed, change)
		found, err := storetest.Strangers(t.Context(), changed)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && len(found) > 0 || want != "" && !slices.Contains(found, want) {
			t.Errorf("%s: found %q, want %q", change, found, want)
		}
	}
}

// do changes a database without the store.
func do(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(t.Context(), statement)
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// A table or column whose owner is not declared is an error.
func TestUnknownTables(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"create table favourites (owner text, site_id integer)", "alter table plans add column queue_id integer"} {
		path := storetest.Path(storetest.OpenTest(t))
		do(t, path, change)
		if _, err := storetest.Strangers(t.Context(), path); err == nil {
			t.Errorf("%s: no error", change)
		}
	}
}
