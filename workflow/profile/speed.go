package profile

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Speeds contains the speeds of types of hosts relative to a reference type, whose speed is 1: a task that takes t on
// the reference type takes t ÷ speed on another type.
type Speeds map[string]Speed // :: type of host → speed

// A Speed is the speed of a type of host.
type Speed struct {
	Factor float64
	Shared int // the number of classes that ran both on this type and on another compared type
}

// of returns the factor of a type of host, or 1 if it is not known.
func (s Speeds) of(host string) float64 {
	if speed, ok := s[host]; ok {
		return speed.Factor
	}
	return 1
}

const (
	minShared    = 3   // minimum number of samples of a class on a host for them to count
	sweeps       = 200 // maximum number of sweeps of the fit; each sweep at least halves the remaining error
	effect       = 1e-9
	sharedWeight = 100 // number of samples beyond which the weight of a class does not increase
)

// A cell describes how long the tasks of a class took on a type of host: log is the logarithm of the geometric mean of
// their runtimes.
type cell struct {
	class  int
	host   string
	log    float64
	weight float64
}

// Speeds returns the relative speeds of the types of hosts on which the same classes ran. The logarithm of a runtime is
// modelled as the sum of an effect of the class and an effect of the host (a two-way model without interaction), fitted
// by least squares to geometric means of at least three samples each. The reference is the type of host with the most
// samples. Types that cannot be compared with the reference, not even through other types, are missing from the result.
//
// Speeds cannot distinguish a slow host from a host that processed larger inputs: use it only for profiles whose hosts
// did the same work.
func (p *Profile) Speeds() Speeds {
	cells, count := p.cells()
	if len(count) == 0 {
		return Speeds{}
	}
	hosts := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a, b))
	})
	reached := comparable(cells, hosts[0])
	cells = slices.DeleteFunc(cells, func(c cell) bool { return !reached[c.host] })
	logs := fitHosts(cells, hosts[0])
	speeds := make(Speeds)
	for host := range reached {
		speeds[host] = Speed{Factor: math.Exp(-logs[host]), Shared: shared(cells, host)}
	}
	return speeds
}

// cells returns a cell for each class and known type of host, and the number of samples for each type.
func (p *Profile) cells() (cells []cell, count map[string]int) {
	count = make(map[string]int)
	for k, c := range p.Classes() {
		logs := make(map[string]Stat)
		for _, s := range c.kept {
			if runtime, ok := s.Values.Get(Runtime); ok && runtime > 0 && s.Host != "" {
				logs[s.Host] = logs[s.Host].with(math.Log(runtime))
			}
		}
		for _, host := range slices.Sorted(maps.Keys(logs)) {
			if s := logs[host]; s.Count >= minShared {
				cells = append(cells, cell{k, host, s.Mean, float64(min(s.Count, sharedWeight))})
				count[host] += int(s.Count)
			}
		}
	}
	return cells, count
}

// comparable returns the hosts that share a class with the reference, directly or through other hosts.
func comparable(cells []cell, reference string) map[string]bool {
	reached, classes := map[string]bool{reference: true}, make(map[int]bool)
	for grown := true; grown; {
		grown = false
		for _, c := range cells {
			if reached[c.host] != classes[c.class] {
				reached[c.host], classes[c.class], grown = true, true, true
			}
		}
	}
	return reached
}

// fitHosts returns the effect of each host. It fits the effects of classes and hosts in turn (Gauss–Seidel).
func fitHosts(cells []cell, reference string) map[string]float64 {
	hosts, classes := make(map[string]float64), make(map[int]float64)
	for range sweeps {
		level(cells, classes, func(c cell) (int, float64) { return c.class, c.log - hosts[c.host] })
		before := maps.Clone(hosts)
		level(cells, hosts, func(c cell) (string, float64) { return c.host, c.log - classes[c.class] })
		zero := hosts[reference]
		moved := 0.0
		for host := range hosts {
			hosts[host] -= zero
			moved = max(moved, math.Abs(hosts[host]-before[host]))
		}
		if moved < effect {
			break
		}
	}
	return hosts
}

// level sets each effect to the weighted mean of the values that left returns for its cells.
func level[K cmp.Ordered](cells []cell, effects map[K]float64, left func(cell) (K, float64)) {
	sums, weights := make(map[K]float64), make(map[K]float64)
	for _, c := range cells {
		k, v := left(c)
		sums[k] += c.weight * v
		weights[k] += c.weight
	}
	for k := range sums {
		effects[k] = sums[k] / weights[k]
	}
}

// shared returns the number of classes that a host has in common with any other host.
func shared(cells []cell, host string) int {
	on := make(map[int]map[string]bool)
	for _, c := range cells {
		if on[c.class] == nil {
			on[c.class] = make(map[string]bool)
		}
		on[c.class][c.host] = true
	}
	n := 0
	for _, hosts := range on {
		if hosts[host] && len(hosts) > 1 {
			n++
		}
	}
	return n
}
