package cost

import (
	"fmt"
	"slices"
	"strings"
)

// weights are the parts of a Per that bills a host by the weights of its resources: for each cpu, GiB of memory and
// GPU, in millionths of a unit. The resource that weighs most is billed, as Slurm does with the priority flag
// MAX_TRES, or the sum, as Slurm does without it.
type weights struct {
	cpu, gib, gpu Money
	sum           bool
}

// Weighed Pers have the form max(cpu=1,mem=0.25,gpu=8)-hour or sum(cpu=1,mem=0.25,gpu=8)-hour, with the weights of
// Slurm's TRESBillingWeights; resources without a weight are free.
const maxPrefix, sumPrefix, weighedSuffix = "max(", "sum(", ")-hour"

// weighed reports whether a Per has weights.
func (p Per) weighed() bool {
	return strings.HasPrefix(string(p), maxPrefix) || strings.HasPrefix(string(p), sumPrefix)
}

// weights parses a weighed Per.
func (p Per) weights() (w weights, err error) {
	list, ok := strings.CutSuffix(string(p)[len(maxPrefix):], weighedSuffix)
	w.sum = strings.HasPrefix(string(p), sumPrefix)
	if !ok {
		return w, fmt.Errorf("%.60q must end with %s", p, weighedSuffix)
	}
	of := map[string]*Money{"cpu": &w.cpu, "mem": &w.gib, "gpu": &w.gpu}
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(part, "=")
		to := of[name]
		if to == nil {
			return w, fmt.Errorf("%.60q must weigh cpu, mem (for each GiB) or gpu, each once, as in "+
				"max(cpu=1,mem=0.25,gpu=8)-hour or sum(cpu=1,mem=0.25,gpu=8)-hour", part)
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
	cpu := scale(w.cpu, []int64{int64(max(0, h.CPUs))}, []int64{1})
	gib := scale(w.gib, []int64{int64(max(0, h.MemoryMiB))}, []int64{1024})
	gpu := scale(w.gpu, []int64{int64(max(0, h.GPUs))}, []int64{1})
	if w.sum {
		return cpu.Plus(gib).Plus(gpu)
	}
	return max(cpu, gib, gpu)
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

// Weighs reports whether the rate bills a host by the weights of its resources.
func (r Rate) Weighs() bool { return r.Per.weighed() }

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
