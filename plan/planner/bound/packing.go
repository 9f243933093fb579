package bound

import (
	"cmp"
	"math"
	"slices"
)

// A scale is a dual-feasible function: it maps sizes such that sizes with a sum of at most a whole have images with a
// sum of at most one (Fekete and Schepers: New classes of fast lower bounds for bin packing problems, Mathematical
// Programming 91, 2001). Items whose images sum to more than m × one do not fit m bins, even if their sizes do. Here a
// bin is one cpu for the length of a window, and a size is the minimum time that a job runs in the window, see
// job.within: a job does not move once it runs, so the jobs of one cpu in a window sum to no more than its length.
// Every function is monotone: a job that runs longer in the window has no smaller image.
type scale struct {
	one   int64
	image func(size int64) int64
}

// cut is U^(ε) of Fekete and Schepers for ε = t ÷ whole, with 0 < ε ≤ ½: sizes above whole − t count as a whole, and
// sizes below t as 0. With it the bound is L2 of Martello and Toth.
func cut(t, whole int64) scale {
	return scale{whole, func(size int64) int64 {
		switch {
		case size > whole-t:
			return whole
		case size < t:
			return 0
		}
		return size
	}}
}

// rounded is u^(k) of Fekete and Schepers: it rounds (k+1) × size down to a multiple of whole, and keeps sizes for
// which that product is already such a multiple.
func rounded(k, whole int64) scale {
	return scale{k * whole, func(size int64) int64 {
		if size*(k+1)%whole == 0 {
			return size * k
		}
		return size * (k + 1) / whole * whole
	}}
}

// counted is f_CCM,1 of Carlier, Clautiaux and Moukrim (New reduction procedures and lower bounds for the
// two-dimensional bin packing problem with fixed orientation, Computers & Operations Research 34, 2007), for 0 < t ≤ ½:
// for a size up to one half, the number of parts of length t that it contains; for a larger size, the number of such
// parts that its complement does not contain.
func counted(t, whole int64) scale {
	all := whole / t
	return scale{2 * all, func(size int64) int64 {
		switch {
		case 2*size > whole:
			return 2 * (all - (whole-size)/t)
		case 2*size == whole:
			return all
		}
		return 2 * (size / t)
	}}
}

// thresholds is the number of parameters to try for cut and counted, and parts is the number for rounded.
const (
	thresholds = 40
	parts      = 12
)

// scales returns functions that are promising for the given sizes. Their images change only at a few parameters: at the
// sizes themselves, and at their complements, divided by one, two or three.
func scales(sizes []int64, whole int64) []scale {
	all := []scale{{whole, func(size int64) int64 { return size }}}
	var at []int64
	for _, size := range sizes {
		for _, t := range []int64{size, whole - size, whole - size + 1} {
			for n := int64(1); n <= 3; n++ {
				if t/n > 0 && 2*(t/n) <= whole {
					at = append(at, t/n)
				}
			}
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	for i := range min(len(at), thresholds) {
		t := at[i*max(1, len(at)-1)/max(1, min(len(at), thresholds)-1)]
		all = append(all, cut(t, whole), counted(t, whole))
	}
	for k := int64(1); k <= parts; k++ {
		all = append(all, rounded(k, whole))
	}
	return all
}

// An item is a number of cpus in use for a part of a window.
type item struct{ size, cpus int64 }

// items returns the usage of jobs in a window, with equal sizes merged.
func items(jobs []job, w interval) []item {
	var all []item
	for _, j := range jobs {
		if size := j.within(w); size > 0 {
			all = append(all, item{size, j.need})
		}
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.size, b.size) })
	different := all[:0]
	for _, it := range all {
		if n := len(different); n > 0 && different[n-1].size == it.size {
			different[n-1].cpus += it.cpus
		} else {
			different = append(different, it)
		}
	}
	return different
}

// packed returns the packing bound: the maximum number of cpus that any scale proves for one of the windows. It tries
// the windows in order, for about the given number of steps.
func packed(jobs []job, loads []load, steps int) int64 {
	cpus := int64(0)
	for _, l := range loads {
		if steps -= len(jobs); steps < 0 {
			break
		}
		all := items(jobs, l.interval)
		sizes := make([]int64, len(all))
		for i, it := range all {
			sizes[i] = it.size
		}
		for _, s := range scales(sizes, l.length()) {
			sum := 0.0
			for _, it := range all {
				sum += float64(it.cpus) * float64(s.image(it.size))
			}
			cpus = max(cpus, roundUp(sum/float64(s.one)))
			steps -= len(all)
		}
	}
	return cpus
}

// roundUp rounds x up to an integer, with a tolerance for floating-point errors.
func roundUp(x float64) int64 { return int64(math.Ceil(x * (1 - 1e-9))) }

// wide returns a bound of at least cpus, which is higher if jobs that need several cpus leave cpus that others cannot
// use. It applies the functions to needs, as fractions of m cpus: jobs that run at the same time need at most m, so
// their images sum to at most one, and the energetic and the packing bound hold with the images as needs and one as m.
// (A function on needs combined with one on times is a conservative scale of Fekete and Schepers: A general framework
// for bounds for higher-dimensional orthogonal packing problems, Mathematical Methods of Operations Research 60, 2004.)
// m starts at cpus and grows until no function refutes it, or until the steps are used up.
func wide(jobs []job, cpus int64, loads []load, steps int) int64 {
	var needs []int64
	var length int64
	for _, j := range jobs {
		needs = append(needs, j.need)
		length += j.length
	}
	slices.Sort(needs)
	needs = slices.Compact(needs)
	if len(needs) == 0 || needs[len(needs)-1] <= 1 {
		return cpus
	}
	loads = loads[:min(len(loads), 16)]
	share := steps / 256
	refuted := func(m int64) bool {
		for _, s := range scales(needs, m) {
			if steps -= share; steps < 0 {
				return false
			}
			if s.one <= math.MaxInt64/4/max(1, length) && s.refute(jobs, loads, share/2) {
				return true
			}
		}
		return false
	}
	for refuted(cpus) {
		cpus++
	}
	return cpus
}

// refute reports whether jobs with scaled needs use more than s.one in some window.
func (s scale) refute(jobs []job, loads []load, steps int) bool {
	var scaled []job
	for _, j := range jobs {
		if j.need = s.image(j.need); j.need > 0 {
			scaled = append(scaled, j)
		}
	}
	most := energetic(scaled, steps)
	return len(most) > 0 && most[0].energy > s.one*most[0].length() || packed(scaled, loads, steps) > s.one
}
