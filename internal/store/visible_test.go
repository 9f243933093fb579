package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// as returns a context for a user's request.
func as(t testing.TB, name string) context.Context {
	return access.With(t.Context(), access.Caller{Name: name, Role: corral.RoleUser})
}

func administrator(t testing.TB, name string) context.Context {
	return access.With(t.Context(), access.Caller{Name: name, Role: corral.RoleAdministrator})
}

// For every kind of object with an owner, a transaction finds and lists exactly the objects that its caller may see.
func TestTransactionsSeeTheirCallersObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owners := []string{"ann", "bob", "cat"}
	var all [][2]string // owner and name of each cluster
	rapid.Check(t, func(rt *rapid.T) {
		owner, name := rapid.SampledFrom(owners).Draw(rt, "owner"), rapid.StringMatching(`[a-z]{1,3}`).Draw(rt, "name")
		err := w.db.Request(as(t, owner)).Write(t.Context(), owner, func(tx *store.Tx) error {
			return store.Done(tx.CreateCluster(corral.Cluster{Name: name, Owner: owner, Kind: corral.Embedded}))
		})
		there := slices.Contains(all, [2]string{owner, name})
		if (corral.KindOf(err) == corral.Conflict) != there || err != nil && !there {
			rt.Fatalf("%s makes %s: %v", owner, name, err)
		}
		if err == nil {
			all = append(all, [2]string{owner, name})
		}
		asker := rapid.SampledFrom(owners).Draw(rt, "asker")
		err = w.db.Request(as(t, asker)).View(t.Context(), func(tx *store.Tx) error {
			list, err := tx.Clusters(store.Filter{})
			for _, c := range list {
				if c.Owner != asker {
					rt.Errorf("%s is shown %+v", asker, c)
				}
			}
			if want := count(all, asker); len(list) != want {
				rt.Errorf("%s has %d clusters, is shown %d", asker, want, len(list))
			}
			c, missing := tx.ClusterNamed(name)
			if found := missing == nil; found != slices.Contains(all, [2]string{asker, name}) || found && c.Owner != asker {
				rt.Errorf("%s asks for %s: %+v, %v", asker, name, c, missing)
			}
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func count(all [][2]string, owner string) (n int) {
	for _, a := range all {
		if a[0] == owner {
			n++
		}
	}
	return n
}

// Names belong to owners; a caller without an object of that name who sees several must specify which.
func TestNamesAreTheirOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, owner := range []string{"ann", "bob"} {
		w.write(func(tx *store.Tx) error {
			s := newSite("hpc")
			s.Owner, s.Root = owner, "/srv/"+owner
			return store.Done(tx.CreateSite(s))
		})
	}
	for _, tt := range []struct {
		ctx  context.Context
		name string
		want string
		kind corral.Kind
	}{
		{as(t, "ann"), "hpc", "ann", ""},
		{as(t, "bob"), "hpc", "bob", ""},
		{as(t, "cat"), "hpc", "", corral.NotFound},
		{as(t, ""), "hpc", "", corral.NotFound},
		{administrator(t, "bob"), "hpc", "bob", ""},
		{administrator(t, "cat"), "hpc", "", corral.Conflict},
		{administrator(t, "cat"), "local", actor, ""},
		{t.Context(), "hpc", "", corral.NotFound}, // without a caller nothing is visible
	} {
		err := w.db.Request(tt.ctx).View(t.Context(), func(tx *store.Tx) error {
			s, err := tx.SiteNamed(tt.name)
			if s.Owner != tt.want {
				t.Errorf("%s is %s's, want %s's", tt.name, s.Owner, tt.want)
			}
			return err
		})
		if corral.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.kind)
		}
	}
}

// One user's changes neither affect nor count another's objects, attempts included: it is as if those did not exist.
func TestChangesDoNotReachOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	w.attempt(g, submitted, started)
	err := w.db.Owner("bob").Write(t.Context(), "bob", func(tx *store.Tx) error {
		_, err := tx.AskGlidein(g.ID, corral.AskCancel, "mine")
		return err
	})
	if corral.KindOf(err) != corral.NotFound {
		t.Errorf("another's glidein: %v", err)
	}
	for owner, want := range map[string]int{"bob": 0, actor: 1} {
		err := w.db.Owner(owner).View(t.Context(), func(tx *store.Tx) error {
			for _, brief := range []bool{false, true} {
				list, err := tx.Glideins(store.GlideinFilter{InBrief: brief})
				if err != nil || len(list) != want || want == 1 && len(list[0].Attempts) != 1 {
					t.Errorf("%s, in brief %v: %+v, %v", owner, brief, list, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	// Roots at one host must not contain one another, even with different owners.
	err = w.db.Owner("bob").View(t.Context(), func(tx *store.Tx) error {
		at, err := tx.SitesAt("local:")
		if len(at) != 1 {
			t.Errorf("sites at local: %+v", at)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	made := corral.Token{Name: "laptop", Owner: "ann", Role: corral.RoleUser, Scopes: []string{"read"},
		Grants: []corral.Grant{corral.GrantLocal}, Digest: digest("a"), ExpiresAt: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)}
	var k corral.Token
	w.write(func(tx *store.Tx) (err error) {
		k, err = tx.CreateToken(made)
		return err
	})
	w.refused(corral.Conflict, func(tx *store.Tx) error { return store.Done(tx.CreateToken(made)) })
	again := made
	again.Name = "other"
	w.refused(corral.Conflict, func(tx *store.Tx) error { return store.Done(tx.CreateToken(again)) }) // its text is already used
	got, _, err := w.db.TokenOf(t.Context(), digest("a"))
	if err != nil || got.ID != k.ID || !got.ExpiresAt.Equal(made.ExpiresAt) || got.Scopes[0] != "read" || got.Grants[0] != corral.GrantLocal {
		t.Errorf("%+v, %v", got, err)
	}
	w.write(func(tx *store.Tx) error { return store.Done(tx.RevokeToken(k.ID, "stolen")) })
	w.write(func(tx *store.Tx) error { return store.Done(tx.RevokeToken(k.ID, "again")) })
	if got, want := w.story(corral.ObjectToken, int64(k.ID)), "create"; len(got) < len(want) {
		t.Errorf("history %q", got)
	}
	again.Name, again.Digest = made.Name, digest("b")
	w.write(func(tx *store.Tx) error { return store.Done(tx.CreateToken(again)) }) // the name is free again
	w.view(func(tx *store.Tx) error {
		for all, want := range map[bool]int{false: 1, true: 2} {
			if list, err := tx.Tokens(store.Filter{All: all}); err != nil || len(list) != want {
				t.Errorf("all %v: %+v, %v", all, list, err)
			}
		}
		return nil
	})
}

// If two owners share a name, each gets the waits of their own attempts.
func TestWaitsAreTheirOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attempt(w.createGlidein(w.newGlidein()), submitted, started)
	w.view(func(tx *store.Tx) error {
		for owner, want := range map[string]int{actor: 1, "bob": 0, "": 1} {
			if waits, err := tx.Waits(store.WaitFilter{Name: "local", Owner: owner}); err != nil || len(waits) != want {
				t.Errorf("%q: %+v, %v", owner, waits, err)
			}
		}
		return nil
	})
}
