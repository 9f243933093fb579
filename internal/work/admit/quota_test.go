package admit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// counted returns a noun that counts against a quota.
func counted(t *testing.T, quota string) noun {
	t.Helper()
	for _, n := range nouns {
		for _, q := range n.quotas {
			if q == quota {
				return n
			}
		}
	}
	t.Fatalf("no noun counts for %s", quota)
	return noun{}
}

// Each quota limits the objects of one owner, independently of other owners. The error contains the number of objects
// and the command that makes room. corrald's own user is not limited.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, q := range access.Quotas {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			of := counted(t, q.Name)
			w.db.Limit(access.Most{q.Name: 2 + w.has(q.Name)})
			ask := func(owner string, n int) error {
				return w.try(func(tx *store.Tx) error {
					at := w.homes[owner]
					if q.Name == "ensembles" { // a cluster runs only one
						var err error
						if at, err = newHome(tx, owner, fmt.Sprint("e", n)); err != nil {
							return err
						}
					}
					err := of.create(tx, owner, at, n)
					if err == nil && q.Name == "runs" { // this quota counts runs that are over
						err = endRuns(tx)
					}
					return err
				})
			}
			for n := range 2 {
				for _, owner := range []string{"ann", "bob", access.LocalName} {
					if err := ask(owner, n); err != nil {
						t.Fatalf("number %d of %s: %v", n, owner, err)
					}
				}
			}
			err := ask("ann", 2)
			has := 2 + w.has(q.Name)
			want := fmt.Sprintf("ann has %d %s, and an owner may have %d (--max-%s): `%s` makes room", has, q.What, has, q.Name, q.Room)
			if corral.KindOf(err) != corral.Forbidden || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("the third of ann: %v, want %s", err, want)
			}
			if err := ask(access.LocalName, 2); err != nil {
				t.Errorf("the third of corrald's own user: %v", err)
			}
		})
	}
}

// has returns the number of objects in an owner's home that count against a quota.
func (w *world) has(quota string) int {
	if quota == "sites" || quota == "clusters" {
		return 1
	}
	return 0
}

func endRuns(tx *store.Tx) error {
	runs, err := tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning}})
	for _, r := range runs {
		if err == nil {
			_, err = tx.MoveRun(r.ID, corral.RunFail, "")
		}
	}
	return err
}

// Objects that are over, removed or expired do not count.
func TestQuotasMakeRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, access.Most{"tokens": 1, "runs-open": 1, "glideins": 1})
	at := w.homes["ann"]
	for n := range 3 {
		w.write(func(tx *store.Tx) error {
			k := corral.Token{Owner: "ann", Name: fmt.Sprint("old", n), Role: corral.RoleUser, Digest: api.TokenDigest(fmt.Sprint("old", n)),
				ExpiresAt: tx.Now().Add(-time.Second)}
			if _, err := tx.CreateToken(k); err != nil {
				return err
			}
			if err := nouns["token"].create(tx, "ann", at, n); err != nil {
				return err
			}
			if err := nouns["run"].create(tx, "ann", at, n); err != nil {
				return err
			}
			if err := nouns["glidein"].create(tx, "ann", at, n); err != nil {
				return err
			}
			return clear(tx)
		})
	}
}

// A run that is resumed counts against the quota of open runs again.
func TestResumedRunsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, access.Most{"runs-open": 1})
	var first corral.Run
	w.write(func(tx *store.Tx) (err error) {
		if err = nouns["run"].create(tx, "ann", w.homes["ann"], 0); err != nil {
			return err
		}
		all, err := tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning}})
		if err != nil {
			return err
		}
		first = all[0]
		return endRuns(tx)
	})
	w.write(func(tx *store.Tx) error { return nouns["run"].create(tx, "ann", w.homes["ann"], 1) })
	resume := func(tx *store.Tx) error {
		_, err := admit.Resume(tx, first)
		return err
	}
	if err := w.try(resume); corral.KindOf(err) != corral.Forbidden {
		t.Errorf("beside an open run: %v, want %s", err, corral.Forbidden)
	}
	w.write(endRuns)
	w.write(resume)
}

// clear ends all running objects.
func clear(tx *store.Tx) error {
	if err := endRuns(tx); err != nil {
		return err
	}
	if _, err := tx.RevokeTokens("ann", ""); err != nil {
		return err
	}
	glideins, err := tx.Glideins(store.GlideinFilter{Live: true})
	for _, g := range glideins {
		if err == nil {
			_, err = tx.AskGlidein(g.ID, corral.AskCancel, "")
		}
	}
	return err
}
