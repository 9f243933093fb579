package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// Two owners who use the same names have separate series, and neither's objects are counted among the other's.
func TestOwnersWithTheSameNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, ben := w.person("ann"), w.person("ben")
	ben.play(act{verb: "cluster", name: "default"}, act{verb: "site", name: "hpc"}, act{verb: "run", name: "default"})
	ann.play(act{verb: "run", name: "default"}, act{verb: "glidein", name: "default"}, act{verb: "trouble", name: "hpc"})
	w.want(w.scrape(), map[string]string{
		`corral_workers{cluster="default",owner="ann"}`:                            "2",
		`corral_workers{cluster="default",owner="ben"}`:                            "2",
		`corral_sites{owner="ann",state="READY"}`:                                  "1",
		`corral_sites{owner="ben",state="READY"}`:                                  "1",
		`corral_glideins{owner="ann",site="hpc",state="ACTIVE"}`:                   "1",
		`corral_glideins{owner="ben",site="hpc",state="NEW"}`:                      "0",
		`corral_attempts{owner="ann",site="hpc",state="NEW"}`:                      "1",
		`corral_site_login_needed{owner="ann",site="hpc"}`:                         "1",
		`corral_site_login_needed{owner="ben",site="hpc"}`:                         "0",
		`corral_runs{owner="ann",state="RUNNING"}`:                                 "1",
		`corral_tasks{owner="ben",state="ready"}`:                                  "5",
		`corral_tasks_ended_total{outcome="done",owner="ben"}`:                     "2",
		`corral_phase_seconds_count{owner="ben",phase="runtime",site="hpc"}`:       "0",
		`corral_reconcile_lag_seconds{owner="ben",site="hpc"}`:                     "0",
		`corral_credential_expiry_timestamp_seconds{owner="ben",site="hpc"}`:       "+Inf",
		`corral_attempts_ended_total{outcome="failed",owner="ben",site="hpc"}`:     "0",
		`corral_reconcile_success_timestamp_seconds{owner="ghost",site="nowhere"}`: "",
	})
}

// Regardless of the objects that two owners with the same names have or remove, a scrape has each series once and
// completely, and one owner's values are the same as if the other did not exist.
func TestOwnersAreApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		both, alone := emptyWorld(t), emptyWorld(t)
		a, b, only := both.person("ann"), both.person("ben"), alone.person("ann")
		for range rapid.IntRange(1, 12).Draw(rt, "acts") {
			next := drawAct(rt)
			if rapid.Bool().Draw(rt, "ben's") {
				b.play(next)
			} else {
				a.play(next)
				only.play(next)
			}
			if rapid.Bool().Draw(rt, "is scraped") {
				both.scrape()
			}
		}
		got, want := ofOwner(both.scrape(), "ann"), ofOwner(alone.scrape(), "ann")
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Error("ann's series with ben there (-want +got): ", diff)
		}
		for series, value := range both.scrape() {
			if strings.HasPrefix(series, "corral_metrics_errors_total") && value != "0" {
				rt.Errorf("%s is %s", series, value)
			}
		}
	})
}

// The numbers of series that a site, a cluster and an owner add to a scrape match docs/metrics.md.
func TestHowMuchGrows(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	had := len(w.scrape())
	grows := func(acts ...act) int {
		before := len(w.scrape())
		w.person("ann").play(acts...)
		return len(w.scrape()) - before
	}
	first := grows(act{verb: "cluster", name: "default"})
	cluster := grows(act{verb: "cluster", name: "hpc"})
	site := grows(act{verb: "site", name: "hpc"})
	more := grows(act{verb: "run", name: "default"}, act{verb: "glidein", name: "default"}, act{verb: "run", name: "hpc"})
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{fmt.Sprintf("| a site | %d |", site), fmt.Sprintf("| a cluster | %d |", cluster),
		fmt.Sprintf("| an owner | %d |", first-cluster), fmt.Sprintf("| a glidein, an attempt, a run, a task | %d |", more)} {
		if !strings.Contains(string(page), says) {
			t.Errorf("docs/metrics.md does not say %q", says)
		}
	}
	if had > 150 {
		t.Errorf("corrald itself has %d series", had)
	}
}

// ofOwner returns one owner's series, without those that depend on the clock.
func ofOwner(series map[string]string, owner string) map[string]string {
	maps.DeleteFunc(series, func(name, _ string) bool {
		return !strings.Contains(name, fmt.Sprintf("owner=%q", owner))
	})
	for name, value := range series {
		if strings.Contains(name, "_seconds{") && value != "0" && value != "+Inf" {
			series[name] = "some"
		}
	}
	return series
}

// A person is an owner in a world.
type person struct {
	*world
	owner string
}

func (w *world) person(owner string) person { return person{w, owner} }

// An act is an owner's action on the objects with a name.
type act struct{ verb, name string }

func drawAct(t *rapid.T) act {
	return act{
		verb: rapid.SampledFrom([]string{"site", "cluster", "glidein", "run", "trouble", "remove site", "remove cluster"}).
			Draw(t, "verb"),
		name: rapid.SampledFrom([]string{"default", "hpc"}).Draw(t, "name"),
	}
}

// play performs acts and skips impossible ones.
func (p person) play(acts ...act) {
	p.Helper()
	for _, a := range acts {
		err := storetest.All(p.db).Write(p.Context(), p.owner, func(tx *store.Tx) error { return p.do(tx, a) })
		if kind := corral.KindOf(err); err != nil && kind != corral.Conflict && kind != corral.NotFound {
			p.Fatalf("%s: %+v: %v", p.owner, a, err)
		}
	}
}

// has returns the person's first matching object in a list.
func has[T any](list []T, err error, fits func(T) bool) (T, error) {
	if i := slices.IndexFunc(list, fits); err == nil && i >= 0 {
		return list[i], nil
	}
	var none T
	if err == nil {
		err = corral.Errorf(corral.NotFound, "there is none")
	}
	return none, err
}

func (p person) do(tx *store.Tx, a act) error {
	list, err := tx.Sites(store.Filter{})
	site, noSite := has(list, err, func(s corral.Site) bool { return s.Owner == p.owner })
	crowds, err := tx.Clusters(store.Filter{})
	cluster, noCluster := has(crowds, err, func(c corral.Cluster) bool { return c.Owner == p.owner && c.Name == a.name })
	switch {
	case a.verb == "site":
		_, err := ready(tx, corral.Site{Name: a.name, Owner: p.owner, Contact: "local:", Batch: "fork", Root: "/r"})
		return err
	case a.verb == "cluster":
		_, err := tx.CreateCluster(corral.Cluster{Name: a.name, Owner: p.owner, Kind: corral.Embedded})
		return err
	case noCluster != nil && (a.verb == "glidein" || a.verb == "run" || a.verb == "remove cluster"):
		return noCluster
	case a.verb == "remove cluster":
		_, err := tx.RemoveCluster(cluster.ID, "")
		return err
	case a.verb == "run":
		// A folder belongs to one run, so the number of runs makes it unique.
		n, err := tx.Runs(store.RunFilter{})
		if err != nil {
			return err
		}
		r, err := tx.CreateRun(corral.Run{Owner: p.owner, Cluster: cluster.ID, Workflow: "fold", Dir: fmt.Sprint("/runs/", len(n))})
		if err == nil {
			_, err = tx.SetRun(r.ID, corral.RunTasks{Total: 7, Ready: 5, Done: 2}, nil)
		}
		return err
	case noSite != nil:
		return noSite
	case a.verb == "glidein":
		g, err := tx.CreateGlidein(corral.Glidein{Owner: p.owner, Site: site.ID, Cluster: cluster.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}})
		if err == nil {
			_, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: fmt.Sprint("tag-", g.ID)})
		}
		return err
	case a.verb == "trouble":
		_, err := tx.SetSite(site.ID, func(s *corral.Site) {
			s.Trouble = corral.SiteTrouble{Why: "no route", Since: s.CreatedAt, LoginNeeded: true}
		})
		return err
	}
	_, err = tx.MoveSite(site.ID, corral.SiteForget, "gone")
	return err
}
