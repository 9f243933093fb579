package cost

import (
	"fmt"
	"slices"
	"strings"
)

// weights are the parts of a Per that bills the resource of a host that weighs most, as Slurm does with the priority
// flag MAX_TRES: for each cpu, GiB of memory and GPU, in millionths of a unit.
type weights struct{ cpu, gib, gpu Money }

// Weighed Pers have the form max(cpu=1,mem=0.25,gpu=8)-hour, with the weights of Slurm's TRESBillingWeights; resources
// without a weight are free.
const weighedPrefix, weighedSuffix = "max(", ")-hour"

// weighed reports whether a Per has weights.
func (p Per) weighed() bool { return strings.HasPrefix(string(p), weighedPrefix) }

// weights parses a weighed Per.
func (p Per) weights() (w weights, err error) {
	list, ok := strings.CutSuffix(strings.TrimPrefix(string(p), weighedPrefix), weighedSuffix)
	if !ok {
		return w, fmt.Errorf("%.60q must end with %s", p, weighedSuffix)
	}
	of := map[string]*Money{"cpu": &w.cpu, "mem": &w.gib, "gpu": &w.gpu}
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(part, "=")
		to := of[name]
		if to == nil {
			return w, fmt.Errorf("%.60q must weigh cpu, mem (for each GiB) or gpu, each once, as in "+
				"max(cpu=1,mem=0.25,gpu=8)-hour", part)
		}
		if *to, err = parseMoney(value); err != nil {
			return w, fmt.Errorf("weight %.60q: %w", part, err)
		}
		delete(of, name)
	}
	return w, nil
}

// units returns the billed units of hosts that hold these resources in total, in millionths.
func (w weights) units(h Holding) Money {
	return max(scale(w.cpu, []int64{int64(max(0, h.CPUs))}, []int64{1}),
		scale(w.gib, []int64{int64(max(0, h.MemoryMiB))}, []int64{1024}),
		scale(w.gpu, []int64{int64(max(0, h.GPUs))}, []int64{1}))
}

// units returns how many of a rate's units a holding has: n ÷ over.
func (r Rate) units(h Holding) (n, over int64) {
	switch {
	case r.Per == CPUHour:
		return int64(max(0, h.CPUs)), 1
	case r.Per == HostHour:
		return int64(max(0, h.Hosts)), 1
	case r.Per.weighed():
		w, _ := r.Per.weights() // it was checked when it was parsed
		return int64(w.units(h)), micro
	}
	return 0, 1
}

// perOf checks the quantity of a price.
func perOf(s string) (Per, error) {
	if long := short[s]; long != "" {
		return long, nil
	}
	per := Per(s)
	if per.weighed() {
		_, err := per.weights()
		return per, err
	}
	if !slices.Contains(pers, per) {
		return per, errPer(s)
	}
	return per, nil
}
