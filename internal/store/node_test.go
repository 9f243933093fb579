package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// failOn makes attempts fail, each on one node.
func (w *world) failOn(nodes ...string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		for _, node := range nodes {
			g, err := tx.CreateGlidein(w.newGlidein())
			if err != nil {
				return err
			}
			j, err := tx.CreateJob(newPilot(g))
			if err != nil {
				return err
			}
			end := ended(corral.OutcomeRemoved)
			end.Lost = []corral.LostHost{{Node: node, Why: "scratch is full"}}
			if _, err := tx.MoveJob(j.ID, end); err != nil {
				return err
			}
		}
		return nil
	})
}

// avoided returns the nodes that the next attempt would avoid, in alphabetical order.
func (w *world) avoided() (names []string) {
	w.t.Helper()
	w.view(func(tx *store.Tx) error { names = w.avoidedIn(tx); return nil })
	return names
}

func (w *world) avoidedIn(tx *store.Tx) (names []string) {
	w.t.Helper()
	bad, err := tx.BadNodes(w.site, "", 1)
	if err != nil {
		w.t.Error(err)
	}
	for _, b := range bad {
		names = append(names, b.Node)
	}
	slices.Sort(names)
	return names
}

func (w *world) forgive(nodes ...string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error { return tx.ForgiveNodes(w.site.ID, nodes...) })
}

// forgiven returns the site's history entries about forgiven nodes.
func (w *world) forgiven() (said []string) {
	w.t.Helper()
	w.view(func(tx *store.Tx) error { said = w.forgivenIn(tx); return nil })
	return said
}

func (w *world) forgivenIn(tx *store.Tx) (said []string) {
	w.t.Helper()
	entries, err := tx.History(corral.ObjectSite, int64(w.site.ID), store.Page{})
	if err != nil {
		w.t.Error(err)
	}
	for _, e := range entries {
		if e.Event == "forgive" {
			said = append(said, e.Actor+": "+e.Reason)
		}
	}
	return said
}

// withBadNodes returns a world in which n1 and n2 of eight nodes are avoided, and n3 has failed once.
func withBadNodes(t *testing.T) *world {
	w := newWorld(t)
	w.write(func(tx *store.Tx) (err error) {
		w.site, err = tx.SetSite(w.site.ID, func(s *corral.Site) {
			s.Queue, s.Facts = "long", &corral.SiteFacts{Queues: []corral.SiteQueue{{Name: "short", Nodes: 1}, {Name: "long", Nodes: 8}}}
		})
		return err
	})
	w.failOn(slices.Repeat([]string{"n1.hpc", "n2"}, corral.AvoidAfter)...)
	w.failOn("n3")
	return w
}

func TestForgiveNodes(t *testing.T) {
	t.Parallel()
	w := withBadNodes(t)
	if got := w.avoided(); !slices.Equal(got, []string{"n1.hpc", "n2"}) {
		t.Fatalf("avoided before: %q", got)
	}
	const n1, n2, n3 = "node n1.hpc: scratch is full", "node n2: scratch is full", "node n3: scratch is full"
	for _, c := range []struct {
		name    string
		forgive []string
		avoided []string
		said    string
	}{
		{"one", []string{"n2"}, []string{"n1.hpc"}, n2},
		{"with its domain", []string{"n1.hpc"}, []string{"n2"}, n1},
		{"without its domain", []string{"n1"}, []string{"n2"}, n1},
		{"two", []string{"n2", "n1"}, nil, n2 + "; " + n1},
		{"one twice", []string{"n2", "n2.other"}, []string{"n1.hpc"}, n2},
		{"one that is not avoided yet", []string{"n3"}, []string{"n1.hpc", "n2"}, n3},
		{"all", nil, nil, n1 + "; " + n2 + "; " + n3},
	} {
		err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error {
			for range 2 { // the second time changes nothing
				if err := tx.ForgiveNodes(w.site.ID, c.forgive...); err != nil {
					return err
				}
			}
			if got := w.avoidedIn(tx); !slices.Equal(got, c.avoided) {
				t.Errorf("%s: avoided are %q, want %q", c.name, got, c.avoided)
			}
			if diff := cmp.Diff([]string{actor + ": " + c.said}, w.forgivenIn(tx)); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			return errRollBack
		})
		if !errors.Is(err, errRollBack) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

var errRollBack = errors.New("roll back")

// Earlier failures no longer count; later ones do.
func TestForgivenNodeFailsAgain(t *testing.T) {
	t.Parallel()
	w := withBadNodes(t)
	w.forgive()
	w.failAfter(w.clearedAt("n1"), "n1", corral.AvoidAfter-1)
	if got := w.avoided(); len(got) > 0 {
		t.Errorf("avoided after %d failures: %q", corral.AvoidAfter-1, got)
	}
	w.failOn("n1")
	if got := w.avoided(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("avoided after %d failures: %q, want n1", corral.AvoidAfter, got)
	}
	w.forgive("n1")
	if said := w.forgiven(); len(w.avoided()) > 0 || len(said) != 2 {
		t.Errorf("forgiven for the second time, and avoided are %q; the history says %q", w.avoided(), said)
	}
}

// clearedAt returns the time up to which losses on a node are ignored.
func (w *world) clearedAt(node string) time.Time {
	w.t.Helper()
	var ms int64
	if err := raw(w.t, w.path).QueryRow("select cleared_at_ms from nodes where name = ?", node).Scan(&ms); err != nil {
		w.t.Fatal(err)
	}
	return time.UnixMilli(ms)
}

// failAfter makes attempts fail on a node after a given time.
func (w *world) failAfter(at time.Time, node string, times int) {
	w.t.Helper()
	for !time.Now().Truncate(time.Millisecond).After(at) { // less than a millisecond
	}
	w.failOn(slices.Repeat([]string{node}, times)...)
}

// An error about an unknown node lists the avoided nodes, and nothing is forgiven.
func TestForgiveStrangeNode(t *testing.T) {
	t.Parallel()
	w := withBadNodes(t)
	for name, words := range map[string]string{"n9": `node "n9" at site local; nodes avoided there: n1.hpc, n2`, "": `node ""`, ".hpc": `node ".hpc"`} {
		err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error { return tx.ForgiveNodes(w.site.ID, "n1", name) })
		if corral.KindOf(err) != corral.NotFound || !strings.Contains(err.Error(), words) {
			t.Errorf("forgiving %q: %v", name, err)
		}
	}
	if got := w.avoided(); len(got) != 2 {
		t.Errorf("avoided: %q", got)
	}
	w.forgive()
	err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error { return tx.ForgiveNodes(w.site.ID, "n9") })
	if err == nil || !strings.HasSuffix(err.Error(), "there: none") {
		t.Errorf("forgiving n9: %v", err)
	}
}

// A node on which a worker started works, even if that was reported to an earlier corrald.
func TestNoteHosts(t *testing.T) {
	t.Parallel()
	w := withBadNodes(t)
	now := time.Now()
	note := func(hosts map[string]time.Time) {
		w.write(func(tx *store.Tx) error { return tx.NoteHosts(w.site.ID, hosts) })
	}
	note(map[string]time.Time{"n1.cluster": now.Add(time.Second), "n2": now.Add(-time.Hour), "n7": now, "": now})
	if got := w.avoided(); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("avoided: %q, want n2", got)
	}
	note(map[string]time.Time{"n1": now.Add(-time.Hour)}) // an older start of a worker changes nothing
	if got := w.avoided(); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("avoided: %q, want n2", got)
	}
	w.forgive("n7")
	w.forgive("n1")
	if said := w.forgiven(); len(said) > 0 {
		t.Errorf("nodes were forgiven on which nothing counted: %q", said)
	}
}

// At most half of a queue's nodes are avoided, and no more than an attempt can do without.
func TestBadNodesOfAQueue(t *testing.T) {
	t.Parallel()
	w := withBadNodes(t)
	for _, c := range []struct {
		queue string
		hosts int
		want  int
	}{{"", 1, 2}, {"long", 6, 2}, {"long", 7, 1}, {"long", 8, 0}, {"short", 1, 0}} {
		w.view(func(tx *store.Tx) error {
			bad, err := tx.BadNodes(w.site, c.queue, c.hosts)
			if len(bad) != c.want {
				t.Errorf("%d hosts in queue %q avoid %v, want %d nodes", c.hosts, c.queue, bad, c.want)
			}
			return err
		})
	}
	other := corral.Site{ID: 77}
	w.view(func(tx *store.Tx) error {
		bad, err := tx.BadNodes(other, "", 1)
		if len(bad) > 0 {
			t.Errorf("another site avoids %v", bad)
		}
		return err
	})
}
