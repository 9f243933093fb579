package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// makers returns, for each of access.Quotas, a function that creates an owner's nth object.
func (w *world) makers() map[string]func(tx *store.Tx, owner string, n int) error {
	return map[string]func(tx *store.Tx, owner string, n int) error{
		"sites": func(tx *store.Tx, owner string, n int) error {
			s := newSite(fmt.Sprint("s", n))
			s.Owner = owner
			return store.Done(tx.CreateSite(s))
		},
		"clusters": func(tx *store.Tx, owner string, n int) error {
			return store.Done(tx.CreateCluster(corral.Cluster{Name: fmt.Sprint("c", n), Owner: owner, Kind: corral.Embedded}))
		},
		"glideins": func(tx *store.Tx, owner string, _ int) error {
			site, cluster, err := home(tx, owner)
			if err != nil {
				return err
			}
			g := w.newGlidein()
			g.Owner, g.Site, g.Cluster = owner, site, cluster
			return store.Done(tx.CreateGlidein(g))
		},
		"runs": func(tx *store.Tx, owner string, n int) error {
			r := w.newRun(fmt.Sprint("/runs/", owner, n))
			_, cluster, err := home(tx, owner)
			r.Owner, r.Cluster = owner, cluster
			if err == nil {
				r, err = tx.CreateRun(r)
			}
			if err == nil {
				_, err = tx.MoveRun(r.ID, corral.RunFail, "")
			}
			return err
		},
		"runs-open": func(tx *store.Tx, owner string, n int) error {
			r := w.newRun(fmt.Sprint("/runs/open/", owner, n))
			_, cluster, err := home(tx, owner)
			if err != nil {
				return err
			}
			r.Owner, r.Cluster = owner, cluster
			return store.Done(tx.CreateRun(r))
		},
		"plans": func(tx *store.Tx, owner string, _ int) error {
			p := w.newPlan()
			_, cluster, err := home(tx, owner)
			if err != nil {
				return err
			}
			p.Owner, p.Cluster = owner, cluster
			return store.Done(tx.CreatePlan(p))
		},
		"profiles": func(tx *store.Tx, owner string, n int) error {
			return store.Done(tx.CreateProfile(newProfile(owner, fmt.Sprint("p", n))))
		},
		"ensembles": func(tx *store.Tx, owner string, n int) error {
			c, err := tx.CreateCluster(corral.Cluster{Name: fmt.Sprint("e", n), Owner: owner, Kind: corral.Embedded})
			if err != nil {
				return err
			}
			e := w.newEnsemble(fmt.Sprint(owner, n))
			e.Owner, e.Cluster = owner, c.ID
			if e.Pilots.SiteID, _, err = home(tx, owner); err != nil {
				return err
			}
			return store.Done(tx.CreateEnsemble(e))
		},
		"tokens": func(tx *store.Tx, owner string, n int) error {
			return store.Done(tx.CreateToken(corral.Token{Owner: owner, Name: fmt.Sprint("t", n), Role: corral.RoleUser,
				Digest: api.TokenDigest(fmt.Sprint(owner, n))}))
		},
	}
}

// home returns an owner's site that accepts pilots, and a cluster; it creates them if there are none.
func home(tx *store.Tx, owner string) (corral.SiteID, corral.ClusterID, error) {
	clusters, err := tx.Clusters(store.Filter{})
	for _, c := range clusters {
		if c.Owner == owner && c.Name == "home" {
			sites, err := tx.Sites(store.Filter{})
			i := slices.IndexFunc(sites, func(s corral.Site) bool { return s.Owner == owner && s.Name == "home" })
			return sites[i].ID, c.ID, err
		}
	}
	if err != nil {
		return 0, 0, err
	}
	site := newSite("home")
	site.Owner, site.Root = owner, "/srv/"+owner
	if site, err = tx.CreateSite(site); err == nil {
		site, err = tx.MoveSite(site.ID, corral.SiteStage, "")
	}
	if err == nil {
		site, err = tx.MoveSite(site.ID, corral.SiteStaged, "")
	}
	if err != nil {
		return 0, 0, err
	}
	c, err := tx.CreateCluster(corral.Cluster{Name: "home", Owner: owner, Kind: corral.Embedded})
	return site.ID, c.ID, err
}

// An owner may have a limited number of objects of each kind, regardless of other owners; the refusal states how many
// there are and how to make room. corrald's own user has no limit.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, q := range access.Quotas {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.db.Limit(access.Most{q.Name: 2})
			makes := w.makers()[q.Name]
			if makes == nil {
				t.Fatalf("the test makes no %s", q.Name)
			}
			asks := func(owner string, n int) error {
				ctx := access.With(t.Context(), access.Caller{Name: owner, Role: corral.RoleAdministrator})
				return storetest.All(w.db).Write(ctx, owner, func(tx *store.Tx) error { return makes(tx, owner, n) })
			}
			for n := range 2 {
				for _, owner := range []string{"ann", "bob", access.LocalName} {
					if err := asks(owner, n); err != nil {
						t.Fatalf("number %d of %s: %v", n, owner, err)
					}
				}
			}
			err := asks("ann", 2)
			want := fmt.Sprintf("ann has 2 %s, and an owner may have 2 (--max-%s): `%s` makes room", q.What, q.Name, q.Room)
			if corral.KindOf(err) != corral.Forbidden || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("the third of ann: %v, want %s", err, want)
			}
			if err := asks(access.LocalName, 2); err != nil {
				t.Errorf("the third of corrald's own user: %v", err)
			}
		})
	}
}

// Ended, removed and expired objects do not count.
func TestQuotasMakeRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.db.Limit(access.Most{"tokens": 1, "runs-open": 1, "glideins": 1})
	ctx := access.With(t.Context(), access.Caller{Name: "ann", Role: corral.RoleAdministrator})
	err := storetest.All(w.db).Write(ctx, "ann", func(tx *store.Tx) error {
		for n := range 3 {
			k := corral.Token{Owner: "ann", Name: fmt.Sprint("t", n), Role: corral.RoleUser, Digest: api.TokenDigest(fmt.Sprint(n)), ExpiresAt: tx.Now().Add(-time.Second)}
			if n == 2 {
				k.ExpiresAt = time.Time{}
			}
			k, err := tx.CreateToken(k)
			if err != nil {
				return err
			}
			if n == 2 {
				if _, err := tx.RevokeToken(k.ID, ""); err != nil {
					return err
				}
				k.Name, k.Digest = "t3", api.TokenDigest("t3")
				if _, err := tx.CreateToken(k); err != nil {
					return err
				}
			}
			r := w.newRun(fmt.Sprint("/runs/", n))
			site, cluster, err := home(tx, "ann")
			if err != nil {
				return err
			}
			r.Owner, r.Cluster = "ann", cluster
			if r, err = tx.CreateRun(r); err == nil {
				_, err = tx.MoveRun(r.ID, corral.RunFail, "")
			}
			if err != nil {
				return err
			}
			g := w.newGlidein()
			g.Owner, g.Site, g.Cluster = "ann", site, cluster
			if g, err = tx.CreateGlidein(g); err == nil {
				_, err = tx.AskGlidein(g.ID, corral.AskCancel, "")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
