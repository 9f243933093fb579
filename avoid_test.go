package corral

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBadNodes(t *testing.T) {
	t.Parallel()
	failed := func(node string, hoursAgo ...int) (jobs []Job) {
		for _, h := range hoursAgo {
			jobs = append(jobs, Job{}.lose(noon.Add(-time.Duration(h)*time.Hour), LostHost{Node: node, Why: "scratch is full"}))
		}
		return jobs
	}
	worked := func(hoursAgo map[string]int) map[string]time.Time {
		at := map[string]time.Time{}
		for host, h := range hoursAgo {
			at[host] = noon.Add(-time.Duration(h) * time.Hour)
		}
		return at
	}
	// several returns attempts that lost hosts on three nodes; their workers ran on other nodes, or did not run.
	several := func(workers int) (jobs []Job) {
		for h := range AvoidAfter {
			j := Job{Workers: workers}
			for i, node := range []string{"n1", "n2", ""} {
				j = j.lose(noon.Add(-time.Duration(h)*time.Hour), LostHost{Host: i, Node: node})
			}
			jobs = append(jobs, j)
		}
		return jobs
	}
	for _, tt := range []struct {
		name    string
		reports []Job
		worked  map[string]int
		nodes   int
		want    []string
	}{
		{"nothing failed", nil, map[string]int{"n1": 0}, 10, nil},
		{"two failures", failed("n1", 2, 1), nil, 10, nil},
		{"three failures", failed("n1", 3, 2, 1), nil, 10, []string{"n1"}},
		{"three failures on each of two nodes", slices.Concat(failed("n1", 5, 4, 3), failed("n2", 3, 2, 1)), nil, 10, []string{"n2", "n1"}},
		{"a worker ran there since", failed("n1", 3, 2, 1), map[string]int{"n1": 0}, 10, nil},
		{"a worker ran there before the last failure", failed("n1", 3, 2, 1), map[string]int{"n1": 2}, 10, nil},
		{"a worker ran there before all failures", failed("n1", 3, 2, 1), map[string]int{"n1": 4}, 10, []string{"n1"}},
		{"with a domain and without", slices.Concat(failed("n1.hpc.org", 3, 2), failed("n1", 1)), map[string]int{"n1.cluster": 9}, 10, []string{"n1"}},
		{"one of the failures is too old", failed("n1", 25, 2, 1), nil, 10, nil},
		{"all failures are too old", failed("n1", 26, 25, 24), nil, 10, nil},
		{"the only known node", failed("n1", 3, 2, 1), nil, 0, nil},
		{"one of two known nodes", failed("n1", 3, 2, 1), map[string]int{"n2": 100}, 0, []string{"n1"}},
		{"most nodes: only half, the latest failure first", slices.Concat(failed("n1", 9, 8, 7), failed("n2", 6, 5, 4), failed("n3", 3, 2, 1)), nil, 4, []string{"n3", "n2"}},
		{"several in each attempt", several(1), nil, 10, []string{"n1", "n2"}},
		{"all in each attempt", several(0), nil, 10, nil},
	} {
		var got []string
		for _, b := range BadNodes(tt.reports, worked(tt.worked), tt.nodes, 1, noon) {
			got = append(got, b.Node)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	b := BadNodes(failed("n1", 2, 1, 3), nil, 2, 1, noon)[0]
	if want := "n1 (3 attempts in a row failed on it, the last at 2026-11-01T11:00:00Z: scratch is full)"; b.String() != want {
		t.Errorf("%q, want %q", b, want)
	}
	b = BadNodes(failed("n1", 2, 1, 3, 4), nil, 2, 1, noon)[0]
	ago := func(hours time.Duration) time.Time { return noon.Add(-hours * time.Hour) }
	if b.Attempts != 4 || !b.Last.Equal(ago(1)) || !b.Since.Equal(ago(2)) || !b.Until.Equal(ago(3).Add(AvoidFor)) {
		t.Errorf("%d attempts, the last at %s; avoided from %s to %s", b.Attempts, b.Last, b.Since, b.Until)
	}
	if still := BadNodes(failed("n1", 2, 1, 3, 4), nil, 2, 1, b.Until.Add(-1)); len(still) != 1 {
		t.Error("not avoided until the very end")
	}
	if over := BadNodes(failed("n1", 2, 1, 3, 4), nil, 2, 1, b.Until); len(over) > 0 {
		t.Errorf("avoided beyond the end: %v", over)
	}
}

// At least half of the known nodes remain, and at least as many as the next attempt needs, regardless of the number of
// failed nodes.
func TestEnoughNodesAreLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, hosts := rapid.IntRange(0, 8).Draw(t, "nodes"), rapid.IntRange(1, 8).Draw(t, "hosts")
		seen := map[string]bool{}
		var losing []Job
		for range rapid.IntRange(0, 60).Draw(t, "failures") {
			l := LostHost{Node: fmt.Sprint("n", rapid.IntRange(1, max(nodes, 3)).Draw(t, "node"))}
			seen[l.Node] = true
			losing = append(losing, Job{}.lose(noon.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "hours ago"))*time.Hour), l))
		}
		known := nodes
		if known == 0 {
			known = len(seen)
		}
		if bad := BadNodes(losing, nil, nodes, hosts, noon); len(bad) > 0 && (known-len(bad) < hosts || len(bad) > known/2) {
			t.Fatalf("%d of %d nodes are avoided, but %d are needed", len(bad), known, hosts)
		}
	})
}

func TestNodesOfASite(t *testing.T) {
	t.Parallel()
	queues := []SiteQueue{{Name: "long", Nodes: 7}, {Name: "short", Nodes: 2, Default: true}, {Name: "dark"}}
	with, without := Site{Facts: &SiteFacts{Queues: queues}}, Site{}
	for queue, want := range map[string]int{"long": 7, "short": 2, "": 2, "dark": 0, "other": 0} {
		if n := with.Nodes(queue); n != want {
			t.Errorf("queue %q: %d, want %d", queue, n, want)
		}
		if n := without.Nodes(queue); n != 0 {
			t.Errorf("queue %q, without facts: %d", queue, n)
		}
	}
}

func TestHostsAreLostOnce(t *testing.T) {
	t.Parallel()
	first, second := LostHost{Host: 1, Node: "n1"}, LostHost{Host: 2, Node: "n2"}
	j := Job{}.lose(noon, first)
	k := j.lose(noon.Add(time.Hour), LostHost{Host: 1, Node: "other"}, second)
	first.At, second.At = noon, noon.Add(time.Hour)
	if !slices.Equal(j.Lost, []LostHost{first}) || !slices.Equal(k.Lost, []LostHost{first, second}) {
		t.Errorf("lost %v, and then %v", j.Lost, k.Lost)
	}
}

// A wait for a glidein's workers waits only for the workers that can still register.
func TestGlideinIsComplete(t *testing.T) {
	t.Parallel()
	g := Glidein{State: GlideinActive, Shape: Shape{Hosts: 3, CPUs: 2}, CPUsNow: 4, Attempts: []Job{{State: JobRunning}}}
	if g.Complete() || g.Losses() != "" {
		t.Errorf("complete with 4 cpus of 6: %s", g.Losses())
	}
	g.Attempts[0] = g.Attempts[0].lose(noon, LostHost{Host: 1, Node: "n2", Why: "disk"})
	if want := "2 of 3 hosts work; node n2: disk"; !g.Complete() || g.Losses() != want {
		t.Errorf("not complete with 4 cpus of 4: %q, want %q", g.Losses(), want)
	}
	if state, reason := g.Shown(); state != "RUNNING" || reason != g.Losses() {
		t.Errorf("shown as %s (%s)", state, reason)
	}
	g.Attempts[0], g.CPUsNow = g.Attempts[0].lose(noon, LostHost{Host: 0}, LostHost{Host: 2}), 0
	if g.Complete() {
		t.Error("complete with no host")
	}
}
