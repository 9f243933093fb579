package execution

import (
	"cmp"
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
)

// Transfers returns the time of the transfers of a run's files by the site of the worker, sorted by name. The function
// site returns "" for a worker whose site is unknown. Sites without transfers are omitted.
func Transfers(x *Execution, site func(worker string) string) (all []corral.SiteTransfer) {
	by := map[string][]Way{} // :: site → transfers of each job; In is their total time
	for c := range len(x.plan.start) - 1 {
		if way, worker, ok := wayOfJob(x, x.plan.tasksOf(c)); ok {
			name := site(x.roster.workers[worker].name)
			by[name] = append(by[name], way)
		}
	}
	delete(by, "")
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, transferOf(name, by[name]))
	}
	return all
}

// wayOfJob sums the transfers of the tasks that were planned as one job; ok is false if no file was transferred, or if
// the tasks were not all done by one worker.
func wayOfJob(x *Execution, members []int32) (sum Way, worker int32, ok bool) {
	for k, i := range members {
		way, travelled := x.tally.ways[i]
		t := x.units.at(int32(i))
		if x.units.state(i) != StateDone || k > 0 && t.worker != worker {
			return sum, worker, false
		}
		worker, ok = t.worker, ok || travelled
		sum.In, sum.Bytes = sum.In+way.In+way.Out, sum.Bytes+way.Bytes
	}
	return sum, worker, ok
}

// transferOf sums the transfers of a site's jobs.
func transferOf(site string, ways []Way) corral.SiteTransfer {
	t := corral.SiteTransfer{Site: site, Jobs: len(ways)}
	var took Msec
	for _, w := range ways {
		took, t.Bytes = took+w.In, t.Bytes+w.Bytes
	}
	t.Took = corral.Seconds(took.sub(0))
	latency, bandwidth := line(ways)
	t.Latency, t.Bandwidth = corral.Seconds(latency*1e6), bandwidth
	return t
}

// worthBytes is the minimum number of bytes from which transfers are attributed to bandwidth if jobs are too similar to
// distinguish latency from bandwidth: sending fewer bytes takes hardly longer than sending none.
const worthBytes = 1 << 20

// line returns the latency, in milliseconds, and the bandwidth, in bytes per second, of transfers that take latency +
// bytes ÷ bandwidth. The smaller half determines the latency, and the largest, which have half of the bytes, determine
// the bandwidth: their bytes divided by their time, so that the estimate for all bytes together is exact. Each estimate
// improves the other, so they are computed alternately. If the small transfers are not small, the two cannot be
// distinguished: then all time is attributed to bandwidth from worthBytes on, and to latency below.
func line(ways []Way) (latency, bandwidth float64) {
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Bytes, b.Bytes) })
	var bytes, took float64
	for _, w := range ways {
		bytes, took = bytes+float64(w.Bytes), took+float64(w.In)
	}
	small, large := ways[:(len(ways)+1)/2], len(ways)
	var sent, needed float64
	for large > len(small) && sent < bytes/2 {
		large--
		sent, needed = sent+float64(ways[large].Bytes), needed+float64(ways[large].In)
	}
	number := float64(len(ways) - large)
	median := float64(small[len(small)-1].Bytes)
	switch {
	case len(ways) >= fewHops && sent > worthBytes/16*number && sent > 2*median*number:
	case bytes >= worthBytes*float64(len(ways)) && took > 0:
		return 0, 1e3 * bytes / took
	default:
		return trimmed(small, 0), 0
	}
	for range 16 { // each iteration at least halves the remaining error
		if needed <= latency*number {
			return trimmed(small, 0), 0
		}
		bandwidth = sent / (needed - latency*number)
		latency = trimmed(small, 1/bandwidth)
	}
	return latency, 1e3 * bandwidth
}

// trimmed returns the mean of the middle 90 % of the times of transfers without the time for their bytes, at the given
// milliseconds per byte.
func trimmed(ways []Way, each float64) float64 {
	rest := make([]float64, len(ways))
	for i, w := range ways {
		rest[i] = float64(w.In) - each*float64(w.Bytes)
	}
	slices.Sort(rest)
	cut := len(rest) / 20
	var sum float64
	for _, r := range rest[cut : len(rest)-cut] {
		sum += r
	}
	return max(0, sum/float64(len(rest)-2*cut))
}
