//go:build sites

package condorpool

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// token creates a token as a pool's owner does for another user.
func (w *world) token(c corral.Cluster, identity string, rights ...string) string {
	w.t.Helper()
	args := []string{"-identity", identity} // the token never expires
	for _, right := range rights {
		args = append(args, "-authz", right)
	}
	out, err := w.tools(c).Run(w.t.Context(), nil, "condor_token_create", args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// attached creates a cluster that is attached to another party's pool.
func (w *world) attached(name, collector, secret string) (c corral.Cluster) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		c, err = tx.CreateCluster(corral.Cluster{Name: name, Owner: "local", Kind: corral.Condor, Attached: true, Collector: collector})
		if err == nil && secret != "" {
			err = w.keepers.PutToken(c.ID, secret)
		}
		return err
	})
	return c
}

// over waits until a cluster is no longer STARTING, and returns it with the history entries of its attachment.
func (w *world) over(id corral.ClusterID) (c corral.Cluster, attached string) {
	w.t.Helper()
	w.eventually("an end of starting", func() bool {
		c = w.cluster(id)
		return c.State != corral.ClusterStarting
	})
	for _, e := range w.history(id) {
		if e.Event == "pool" {
			attached = e.Reason
		}
	}
	return c, attached
}

func (w *world) history(id corral.ClusterID) (h []corral.Entry) {
	w.t.Helper()
	err := storetest.All(w.db).View(w.t.Context(), func(tx *store.Tx) (err error) {
		h, err = tx.History(corral.ObjectCluster, int64(id), store.Page{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// workerOf starts a worker of a new attempt with a token from Mint, waits until the worker is listed, and returns the
// token.
func (w *world) workerOf(c corral.Cluster) condor.Token {
	w.t.Helper()
	j := w.attempt(c, 1, 2)
	secret := w.mint(c, j)
	w.glidein(c, j, secret, nil)
	w.eventually("a worker", func() bool {
		workers := w.keepers.Workers(c.ID)
		return len(workers) == 1 && workers[0].ID == j.Tag+"/0"
	})
	token, err := condor.ParseToken(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// owner returns the user of a pool of ours.
func owner(t *testing.T) string {
	t.Helper()
	account, err := condor.AccountFor(programs.Unprivileged())
	if err != nil {
		t.Fatal(err)
	}
	return account.Name + "@corral.pool"
}

// TestAttachWithoutFetch attaches to a pool that creates no tokens for other users, as ours do not.
func TestAttachWithoutFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.ready("theirs")
	secret := w.token(theirs, owner(t), "READ", "ADVERTISE_STARTD", "ADVERTISE_MASTER")
	c, history := w.over(w.attached("mine", theirs.Collector, secret).ID)
	if c.State != corral.ClusterReady || c.Version != "23.9.6" || c.ScheddAt != "" || !strings.Contains(history, "get the one provided") {
		t.Errorf("cluster = %+v\nhistory: %s", c, history)
	}
	if w.workerOf(c).Secret() != secret || w.mint(c, w.attempt(c, 1, 1)) != secret {
		t.Error("workers get another token than the one that was given")
	}
	info, err := os.Stat(w.keepers.folder(c.ID).in(tokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
	if len(w.keepers.Workers(theirs.ID)) != 0 {
		t.Error("another cluster's worker is listed")
	}
}

// TestWideTokensStayHere attaches to a pool that creates no tokens for other users, with tokens that have more rights
// than workers need: these tokens work for the queue, but are not sent to any site.
func TestWideTokensStayHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.ready("theirs")
	for name, test := range map[string]struct {
		rights []string
		what   string
	}{
		"submits": {[]string{"READ", "WRITE", "ADVERTISE_STARTD", "ADVERTISE_MASTER"}, "also allows WRITE"},
		"all":     {nil, "has all rights of its owner"},
	} {
		c, history := w.over(w.attached(name, theirs.Collector, w.token(theirs, owner(t), test.rights...)).ID)
		if c.State != corral.ClusterReady || !strings.Contains(history, "no glidein can join") || !strings.Contains(history, test.what) {
			t.Errorf("cluster = %+v\nhistory: %s", c, history)
		}
		_, _, err := w.keepers.Mint(t.Context(), c.ID, w.attempt(c, 1, 1).ID, time.Hour)
		if corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), "must not be sent to a site") {
			t.Errorf("%s: Mint() = %v, want it forbidden", name, err)
		}
		if _, err := w.tools(c).Run(t.Context(), nil, "condor_ping", "-type", "collector", "WRITE"); err != nil {
			t.Errorf("%s: the token is of no use here: %v", name, err)
		}
	}
}

// TestAttachFetches attaches to a pool that creates tokens for other users, which is HTCondor's default. The pool
// outlives the cluster; while it is down, the cluster reports that.
func TestAttachFetches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address, err := condor.FreeAddress(w.keepers.cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := condor.NewPool(condor.PoolConfig{Dir: filepath.Join(w.dir, "theirs"), Release: release, Address: address,
		RunAs: programs.Unprivileged(), Extra: "SEC_TOKEN_ISSUER_KEY = POOL\nSCHEDD.USE_SHARED_PORT = False"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute) // for everything that this test does
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if err := pool.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := pool.Start(ctx); err != nil {
		t.Fatal(err)
	}
	given, err := pool.Mint(1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c, history := w.over(w.attached("mine", address.String(), given.Secret()).ID)
	if c.State != corral.ClusterReady || !strings.Contains(history, "a token that the pool's collector creates") {
		t.Fatalf("cluster = %+v\nhistory: %s", c, history)
	}
	if at, err := net.Dial("tcp", c.ScheddAt); err != nil || c.ScheddAt == c.Collector {
		t.Errorf("the schedd is at %q: %v, want a port of its own", c.ScheddAt, err)
	} else {
		at.Close()
	}
	if token := w.workerOf(c); token.ID == given.ID || token.Identity != given.Identity {
		t.Errorf("workers got %v, want another than %v", token, given)
	}
	thief := w.stranger(c, w.mint(c, w.attempt(c, 1, 1)))
	if _, err := thief.Run(ctx, nil, "condor_token_fetch", "-type", "COLLECTOR", "-authz", "WRITE"); err == nil {
		t.Error("a token that went to a site makes another that can submit")
	}

	if err := pool.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	w.eventually("the reason", func() bool { return strings.Contains(w.cluster(c.ID).Reason, "does not answer") })
	if workers := w.keepers.Workers(c.ID); len(workers) != 1 || workers[0].Connected {
		t.Errorf("workers = %+v, want one that is not connected", workers)
	}
	if err := pool.Start(ctx); err != nil {
		t.Fatal(err)
	}
	w.eventually("no reason", func() bool { return w.cluster(c.ID).Reason == "" })
	w.eventually("the worker", func() bool {
		workers := w.keepers.Workers(c.ID)
		return len(workers) == 1 && workers[0].Connected
	})
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	w.await(c.ID, corral.ClusterDeleted)
	if h, err := pool.Health(ctx); err != nil || !h.OK() {
		t.Errorf("the pool after the removal of the cluster: %+v, %v", h, err)
	}
}

func TestAttachSaysWhyNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs, other := w.ready("theirs"), w.ready("other")
	for name, test := range map[string]struct{ collector, secret, want string }{
		"no token":      {theirs.Collector, "", "the pool has no token"},
		"foreign token": {theirs.Collector, w.token(other, owner(t)), "refuses the token"},
		"nobody there":  {"127.0.0.1:1", w.token(theirs, owner(t)), "does not answer"},
		"reads only":    {theirs.Collector, w.token(theirs, owner(t), "READ"), "does not let workers join"},
		"no address":    {"a b", w.token(theirs, owner(t)), "are not a collector and a schedd"},
	} {
		c, _ := w.over(w.attached(name, test.collector, test.secret).ID)
		if c.State != corral.ClusterFailed || !strings.Contains(c.Reason, test.want) {
			t.Errorf("%s: %s: %s, want %q", name, c.State, c.Reason, test.want)
		}
		t.Logf("%s: %s", name, c.Reason)
	}
	if err := w.keepers.PutToken(theirs.ID, "secret"); corral.KindOf(err) != corral.Invalid {
		t.Errorf("PutToken() of no token: %v", err)
	}
}
