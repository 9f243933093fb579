package store_test

import (
	"errors"
	"fmt"
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

// mint creates the n-th token with the given parent.
func mint(tx *store.Tx, owner string, n int, parent corral.TokenID) (corral.Token, error) {
	return tx.CreateToken(corral.Token{Name: fmt.Sprint("t", n), Owner: owner, Role: corral.RoleUser, Parent: parent, Digest: tokenDigest(n)})
}

func tokenDigest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

// Over random histories of two owners, no token is VALID if it was created, directly or indirectly, with a REVOKED
// one, or if it is in the list beside the database.
func TestDescendantsOfARevokedTokenAreRevoked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorldIn(t)
		made := 0
		var revoked []corral.TokenID
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			err := storetest.All(w).Write(t.Context(), actor, func(tx *store.Tx) error {
				id := corral.TokenID(rapid.IntRange(0, made).Draw(t, "token"))
				if id > 0 && rapid.Bool().Draw(t, "revoke") {
					revoked = append(revoked, id)
					return store.Done(tx.RevokeToken(id, "stolen"))
				}
				_, err := mint(tx, rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"), made+1, id)
				if err == nil {
					made++
				}
				return err
			})
			if err != nil && corral.KindOf(err) != corral.Forbidden {
				t.Fatal(err)
			}
		}
		all, err := store.Read(t.Context(), storetest.All(w), func(tx *store.Tx) ([]corral.Token, error) { return tx.Tokens(store.Filter{All: true}) })
		if err != nil || len(all) != made {
			t.Fatalf("%d tokens, %v: want %d", len(all), err, made)
		}
		for _, k := range all {
			ended := slices.Contains(revoked, k.ID)
			if k.Parent != 0 {
				ended = ended || all[k.Parent-1].State == corral.TokenRevoked
			}
			if (k.State == corral.TokenRevoked) != ended {
				t.Errorf("token %d, made with %d, is %s; revoked were %v", k.ID, k.Parent, k.State, revoked)
			}
		}
	})
}

// newWorldIn opens an empty database for one round of a property test.
func newWorldIn(t *rapid.T) *store.DB {
	dir, err := os.MkdirTemp("", "owners-")
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), dir+"/corral.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return db
}

// An older database, from before a token was revoked and accounts were suspended and ended, is updated to match the
// list beside it. So is a database whose last transaction was lost after its line was written.
func TestOldDatabaseBringsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		_, err := mint(tx, "ann", 1, 0)
		_, second := mint(tx, "ann", 2, 1)
		_, third := mint(tx, "bob", 3, 0)
		_, fourth := mint(tx, "eve", 4, 0)
		return errors.Join(err, second, third, fourth)
	})
	before := w.path + ".before"
	if _, err := store.Snapshot(t.Context(), w.path, before); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.RevokeToken(1, "stolen")
		_, suspended := tx.MoveOwner("bob", corral.OwnerSuspend, "on leave")
		_, ended := tx.MoveOwner("eve", corral.OwnerEnd, "left")
		return errors.Join(err, suspended, ended)
	})
	list, err := os.ReadFile(store.RevokedOf(w.path))
	if err != nil || strings.Count(string(list), "\n") != 5 {
		t.Fatalf("%v, the list is\n%s", err, list)
	}
	if err := os.WriteFile(store.RevokedOf(before), append(list, "sha256:torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	old := open(t, before)
	err = storetest.All(old).View(t.Context(), func(tx *store.Tx) error {
		for n, want := range map[int]corral.TokenState{1: corral.TokenRevoked, 2: corral.TokenRevoked, 3: corral.TokenValid, 4: corral.TokenRevoked} {
			if k, _, err := old.TokenOf(t.Context(), tokenDigest(n)); err != nil || k.State != want {
				t.Errorf("token %d is %s, %v; want %s", n, k.State, err, want)
			}
		}
		for name, want := range map[string]corral.OwnerState{"ann": corral.OwnerActive, "bob": corral.OwnerSuspended, "eve": corral.OwnerEnding} {
			if o, err := tx.Owner(name); err != nil || o.State != want {
				t.Errorf("%s is %s, %v; want %s", name, o.State, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = storetest.All(old).Write(t.Context(), actor, func(tx *store.Tx) error {
		_, err := mint(tx, "ann", 1, 0) // its text cannot be used for another one either
		return err
	})
	if corral.KindOf(err) != corral.Conflict {
		t.Errorf("the text of a revoked token can be used again: %v", err)
	}
}

// The list must not be ignored if it cannot be parsed: an invalid line keeps the database from being opened, and the
// error names the line.
func TestListThatCannotBeRead(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/corral.db"
	if err := os.WriteFile(store.RevokedOf(path), []byte("sha256:00 yesterday 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), path)
	if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "line 1 of "+store.RevokedOf(path)) {
		t.Errorf("opened: %v", err)
	}
}

// Merging two lists yields the lines of both, once each, ordered by time: the last line about an owner counts.
func TestListsAreMerged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := dir+"/one", dir+"/other"
	line := func(word, day, rest string) string { return word + " 2026-11-" + day + "T00:00:00.000Z " + rest + "\n" }
	a, b := line(tokenDigest(1), "01", "1"), line(tokenDigest(2), "03", "2")
	suspended, back := line("owner:bob", "02", "SUSPENDED"), line("owner:bob", "04", "ACTIVE")
	if err := errors.Join(os.WriteFile(one, []byte(a+back), 0o600), os.WriteFile(other, []byte(a+suspended+b), 0o600), store.MergeRevoked(one, other)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(one)
	if diff := cmp.Diff(a+suspended+b+back, string(got)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if err := store.MergeRevoked(dir+"/none", dir+"/nothing"); err != nil {
		t.Error(err)
	}
}

// The life of an account: each move from each state. A repeated move changes nothing and leaves no history entry.
func TestLifeOfAnOwner(t *testing.T) {
	t.Parallel()
	to := map[corral.OwnerState][]corral.OwnerMove{
		corral.OwnerActive: nil, corral.OwnerSuspended: {corral.OwnerSuspend}, corral.OwnerEnding: {corral.OwnerEnd},
		corral.OwnerEnded: {corral.OwnerEnd, corral.OwnerEndDone},
	}
	const no = corral.OwnerState("")
	moves := []corral.OwnerMove{corral.OwnerSuspend, corral.OwnerResume, corral.OwnerEnd, corral.OwnerEndDone}
	for from, want := range map[corral.OwnerState][4]corral.OwnerState{
		corral.OwnerActive:    {corral.OwnerSuspended, corral.OwnerActive, corral.OwnerEnding, no},
		corral.OwnerSuspended: {corral.OwnerSuspended, corral.OwnerActive, corral.OwnerEnding, no},
		corral.OwnerEnding:    {no, no, corral.OwnerEnding, corral.OwnerEnded},
		corral.OwnerEnded:     {no, corral.OwnerActive, corral.OwnerEnded, corral.OwnerEnded},
	} {
		for i, move := range moves {
			o := corral.Owner{Name: "ann", State: corral.OwnerActive}
			for _, before := range to[from] {
				o, _, _ = o.Apply(before, "root", "", time.Time{})
			}
			after, entries, err := o.Apply(move, "root", "why", time.Unix(1, 0))
			switch {
			case want[i] == no && corral.KindOf(err) != corral.Conflict, want[i] != no && (err != nil || after.State != want[i]):
				t.Errorf("%s of one that is %s: %s, %v; want %s", move, from, after.State, err, want[i])
			case (len(entries) == 1) != (err == nil && after.State != from):
				t.Errorf("%s of one that is %s leaves %v", move, from, entries)
			}
		}
	}
}

// Nothing is created for an owner whose account is not ACTIVE, for any caller: the store itself refuses it.
func TestNothingIsMadeForAnOwnerWhoIsSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return store.Done(tx.MoveOwner(actor, corral.OwnerSuspend, "a leak")) })
	for name, make := range map[string]func(*store.Tx) error{
		"site":    func(tx *store.Tx) error { return store.Done(tx.CreateSite(newSite("other"))) },
		"glidein": func(tx *store.Tx) error { return store.Done(tx.CreateGlidein(w.newGlidein())) },
		"cluster": func(tx *store.Tx) error {
			return store.Done(tx.CreateCluster(corral.Cluster{Name: "other", Owner: actor, Kind: corral.Embedded}))
		},
		"token": func(tx *store.Tx) error { return store.Done(mint(tx, actor, 1, 0)) },
		"scale": func(tx *store.Tx) error {
			return store.Done(tx.CreateScale(corral.Scale{Cluster: w.cluster.ID, Owner: actor, Sites: []string{"local"}, Max: 1, CPUs: 1, Walltime: 600}))
		},
	} {
		err := storetest.All(w.db).Write(t.Context(), "root", make)
		if corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), "the account ada is suspended: a leak") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.write(func(tx *store.Tx) error { return store.Done(tx.MoveOwner(actor, corral.OwnerResume, "")) })
	w.createGlidein(w.newGlidein())
}
