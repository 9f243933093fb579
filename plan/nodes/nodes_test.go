package nodes_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/nodes"
)

func node(count, cpus, memoryMiB, gpus int) corral.NodeType {
	return corral.NodeType{Count: count, Resources: host(cpus, memoryMiB, gpus)}
}

func host(cpus, memoryMiB, gpus int) corral.Resources {
	return corral.Resources{CPUs: cpus, MemoryMiB: memoryMiB, GPUs: gpus}
}

func TestMost(t *testing.T) {
	t.Parallel()
	whole := node(3, 16, 64, 0)
	whole.Whole = true
	for name, tt := range map[string]struct {
		types []corral.NodeType
		each  corral.Resources
		want  int
	}{
		"by cpus":              {[]corral.NodeType{node(64, 16, 64, 0)}, host(4, 16, 0), 256},
		"by memory":            {[]corral.NodeType{node(64, 16, 64, 0)}, host(1, 40, 0), 64},
		"by gpus":              {[]corral.NodeType{node(4, 16, 64, 4)}, host(1, 1, 1), 16},
		"types":                {[]corral.NodeType{node(2, 4, 8, 0), node(1, 8, 64, 2)}, host(2, 5, 0), 6},
		"none":                 {[]corral.NodeType{node(2, 4, 8, 0)}, host(1, 1, 1), 0},
		"whole nodes":          {[]corral.NodeType{whole}, host(1, 1, 0), 3},
		"unknown memory":       {[]corral.NodeType{node(2, 4, corral.Unlimited, 0)}, host(1, 1000, 0), 8},
		"no request of it":     {[]corral.NodeType{node(2, 4, 8, 0)}, host(1, corral.Unlimited, 0), 8},
		"no types":             {nil, host(1, 1, 0), 0},
		"nodes without cpus":   {[]corral.NodeType{node(2, 0, 8, 0)}, host(1, 1, 0), 0},
		"a negative remainder": {[]corral.NodeType{node(1, -1, 8, 0)}, host(1, 1, 0), 0},
	} {
		if got := nodes.Most(tt.types, tt.each); got != tt.want {
			t.Errorf("%s: Most() = %d, want %d", name, got, tt.want)
		}
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	types := []corral.NodeType{node(64, 16, 64, 0), node(2, 32, 512, 4)}
	for name, tt := range map[string]struct {
		cpus  int
		needs corral.Resources
		want  corral.Resources
		ok    bool
	}{
		"every type":          {4, host(1, 2, 0), host(4, 16, 0), true},
		"more than the share": {4, host(1, 40, 0), host(4, 40, 0), true},
		"large memory":        {4, host(1, 100, 0), host(4, 100, 0), true},
		"its share":           {8, host(1, 100, 0), host(8, 128, 1), true},
		"a gpu":               {4, host(1, 2, 1), host(4, 64, 1), true},
		"too much":            {4, host(1, 600, 0), host(4, 600, 0), false},
		"too many cpus":       {64, host(1, 2, 0), host(64, 2, 0), false},
	} {
		got, ok := nodes.Room(types, tt.cpus, tt.needs)
		got.DiskMiB = 0
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: Room() = %v, %t, want %v, %t", name, got, ok, tt.want, tt.ok)
		}
	}
}

// packs tries every assignment of hosts to nodes.
func packs(free []corral.Resources, hosts []corral.Resources) bool {
	if len(hosts) == 0 {
		return true
	}
	for i := range free {
		if !hosts[0].FitIn(free[i]) {
			continue
		}
		free[i] = free[i].Minus(hosts[0])
		ok := packs(free, hosts[1:])
		free[i] = free[i].Plus(hosts[0])
		if ok {
			return true
		}
	}
	return false
}

// For few hosts, Fit finds a packing if and only if there is one, and Exceeds is never true if there is one.
func TestFewHostsFitExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		upTo := func(least, most int, name string) int { return rapid.IntRange(least, most).Draw(t, name) }
		var types []corral.NodeType
		var free []corral.Resources
		for range upTo(1, 2, "types") {
			n := node(upTo(1, 2, "nodes"), upTo(1, 8, "cpus"), upTo(1, 12, "memory"), upTo(0, 2, "gpus"))
			types = append(types, n)
			for range n.Count {
				free = append(free, n.Resources)
			}
		}
		var hosts []nodes.Hosts
		var each []corral.Resources
		for range upTo(1, 7, "hosts") {
			h := host(upTo(1, 5, "host cpus"), upTo(0, 7, "host memory"), upTo(0, 1, "host gpus"))
			hosts, each = append(hosts, nodes.Hosts{Count: 1, Each: h}), append(each, h)
		}
		want := packs(free, each)
		if got := nodes.Fit(types, hosts); got != want {
			t.Fatalf("Fit(%v, %v) = %t, want %t", types, hosts, got, want)
		}
		if want && nodes.Exceeds(types, hosts) {
			t.Fatalf("Exceeds(%v, %v), but they fit", types, hosts)
		}
	})
}

// Equal hosts fit up to their largest number, and one more exceeds the nodes.
func TestEqualHostsFitUpToTheMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		upTo := func(least, most int, name string) int { return rapid.IntRange(least, most).Draw(t, name) }
		var types []corral.NodeType
		for range upTo(1, 3, "types") {
			n := node(upTo(1, 300, "nodes"), upTo(1, 64, "cpus"), upTo(1, 512, "memory"), upTo(0, 8, "gpus"))
			n.Whole = rapid.Bool().Draw(t, "whole")
			types = append(types, n)
		}
		each := host(upTo(1, 16, "host cpus"), upTo(0, 64, "host memory"), upTo(0, 2, "host gpus"))
		most := nodes.Most(types, each)
		if all := []nodes.Hosts{{most, each}}; !nodes.Fit(types, all) || nodes.Exceeds(types, all) {
			t.Fatalf("%d hosts of %v do not fit on %v", most, each, types)
		}
		if more := []nodes.Hosts{{most, each}, {1, each}}; nodes.Fit(types, more) || !nodes.Exceeds(types, more) {
			t.Fatalf("%d hosts of %v fit on %v", most+1, each, types)
		}
	})
}

// A tally agrees with Fit at any time.
func TestTally(t *testing.T) {
	t.Parallel()
	types := []corral.NodeType{node(2, 4, 8, 0), node(1, 8, 64, 2)}
	rapid.Check(t, func(t *rapid.T) {
		tally := nodes.NewTally(types)
		var held []nodes.Hosts
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if n := len(held); n > 0 && rapid.Bool().Draw(t, "leaves") {
				k := rapid.IntRange(0, n-1).Draw(t, "which")
				tally.Add(-held[k].Count, held[k].Each)
				held = append(held[:k], held[k+1:]...)
				continue
			}
			h := nodes.Hosts{Count: rapid.IntRange(1, 3).Draw(t, "count"), Each: host(rapid.IntRange(1, 4).Draw(t, "cpus"),
				rapid.SampledFrom([]int{1, 5, 20}).Draw(t, "memory"), 0)}
			takes := tally.Takes(h.Count, h.Each)
			held = append(held, h)
			tally.Add(h.Count, h.Each)
			if fits := nodes.Fit(types, held); takes != fits || tally.Fits() != fits {
				t.Fatalf("with %v: Takes() = %t, Fits() = %t, want %t", held, takes, tally.Fits(), fits)
			}
		}
	})
}

// A search among nodes that are almost equal ends.
func TestSearchEnds(t *testing.T) {
	t.Parallel()
	var types []corral.NodeType
	for i := range 12 {
		types = append(types, node(1, 16, 64_000+i, 0))
	}
	hosts := []nodes.Hosts{{11, host(12, 10, 0)}, {1, host(8, 64_020, 0)}}
	if nodes.Fit(types, hosts) {
		t.Error("a host fits on nodes that are all too small for it")
	}
	hosts[1].Each.MemoryMiB = 63_995 // beside no other host
	types = types[:11]
	if nodes.Fit(types, hosts) {
		t.Error("twelve hosts fit on eleven nodes")
	}
}
