package profile

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/corral-pilot/corral"
)

// A Profile summarises the tasks of runs. The zero value is not usable; use New. Only one goroutine may use a Profile
// at a time, because even reading sorts and trims the kept samples.
type Profile struct {
	runs map[string]bool
	// :: transformation → level → class; only AllLevels if the transformation is not divided.
	kinds map[string]map[int]*Class
}

// New returns an empty profile.
func New() *Profile {
	return &Profile{runs: make(map[string]bool), kinds: make(map[string]map[int]*Class)}
}

// Of returns the profile of the given samples.
func Of(samples []Sample) (*Profile, error) {
	p := New()
	for _, s := range samples {
		if err := p.Add(s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// A Class summarises the tasks of a transformation, at all levels or at one level.
type Class struct {
	Transformation string
	Level          int // AllLevels: any level
	stats          [metrics]Stat
	kept           []keptSample
	full           bool   // MaxSamples were kept at the last trim
	cutoff         uint64 // if full: the highest key among the kept samples; no sample with a higher key is kept
}

type keptSample struct {
	key uint64
	Sample
}

// MaxSamples is the maximum number of samples kept for a class. Up to this number, quantiles are exact. Beyond it,
// samples are left out as if at random, which shifts a quantile by up to 1.6 % of the samples (two standard deviations,
// at the median).
const MaxSamples = 4096

// maxLevels is the maximum number of levels of a transformation that are kept apart. If a transformation has more
// levels, as in a chain, the levels are not different kinds of work, and the transformation is not divided.
const maxLevels = 16

// Add adds a sample. It returns an error of kind Invalid, and leaves p unchanged, for a sample without a transformation
// or without a value, and for values that no measurement can produce (negative, NaN, infinite).
func (p *Profile) Add(s Sample) error {
	if err := s.validate(); err != nil {
		return corral.Errorf(corral.Invalid, "%w", err)
	}
	cpu, known := s.Values.Get(CPU)
	runtime, measured := s.Values.Get(Runtime)
	if _, given := s.Values.Get(Utilization); !given && known && measured && runtime > 0 && cpu/runtime <= largest {
		s.Values.Set(Utilization, cpu/runtime)
	}
	c := p.class(s.Transformation, s.Level)
	for m := range metrics {
		if v, ok := s.Values.Get(m); ok {
			c.stats[m] = c.stats[m].with(v)
		}
	}
	if key := s.key(); !c.full || key <= c.cutoff {
		c.kept = append(c.kept, keptSample{key, s})
	}
	if len(c.kept) >= 2*MaxSamples {
		c.trim()
	}
	p.runs[s.Run] = true
	return nil
}

// Merge adds the contents of q to p; q is not changed. No run may count twice: if both profiles contain the same run,
// Merge returns an error of kind Conflict.
func (p *Profile) Merge(q *Profile) error {
	for _, run := range q.Runs() {
		if p.runs[run] {
			return corral.Errorf(corral.Conflict, "run %q is in both profiles", run)
		}
	}
	maps.Copy(p.runs, q.runs)
	for _, name := range slices.Sorted(maps.Keys(q.kinds)) {
		levels := q.kinds[name]
		for _, level := range slices.Sorted(maps.Keys(levels)) {
			p.class(name, level).absorb(levels[level])
		}
	}
	return nil
}

// Runs returns the names of the runs, sorted. For a profile that was read from CSV it returns none.
func (p *Profile) Runs() []string { return slices.Sorted(maps.Keys(p.runs)) }

// Transformations returns the names of the transformations in the profile, sorted.
func (p *Profile) Transformations() []string { return slices.Sorted(maps.Keys(p.kinds)) }

// Thin keeps at most n samples of each class, so that the profile occupies little space. Statistics remain exact;
// quantiles and models use the kept samples, which are chosen in the same way as for MaxSamples.
func (p *Profile) Thin(n int) {
	for _, levels := range p.kinds {
		for _, c := range levels {
			if c.trim(); len(c.kept) > n {
				c.kept = slices.Clip(c.kept[:n])
			}
		}
	}
}

// class returns the class of a transformation for a level, and creates the class if necessary. Once a transformation
// has too many levels, or a sample of it has no known level, the transformation remains a single class.
func (p *Profile) class(name string, level int) *Class {
	levels := p.kinds[name]
	if levels == nil {
		levels = make(map[int]*Class)
		p.kinds[name] = levels
	}
	if _, undivided := levels[AllLevels]; undivided {
		level = AllLevels
	}
	c := levels[level]
	if c == nil {
		c = &Class{Transformation: name, Level: level}
		levels[level] = c
	}
	if len(levels) > maxLevels || level == AllLevels && len(levels) > 1 {
		c = pooled(levels)
		p.kinds[name] = map[int]*Class{AllLevels: c}
	}
	return c
}

// pooled returns one class for all levels.
func pooled(levels map[int]*Class) *Class {
	all := &Class{Level: AllLevels}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		all.Transformation = levels[level].Transformation
		all.absorb(levels[level])
	}
	return all
}

func (c *Class) absorb(o *Class) {
	for m := range metrics {
		c.stats[m] = c.stats[m].merged(o.stats[m])
	}
	c.kept = append(c.kept, o.kept...)
	c.trim()
}

// trim keeps the samples with the lowest keys, in the order of their keys. The result is the same whether a union is
// trimmed once or its parts are trimmed first, so the samples of a merged profile do not depend on the order of
// merging.
func (c *Class) trim() {
	slices.SortFunc(c.kept, func(a, b keptSample) int {
		return cmp.Or(
			cmp.Compare(a.key, b.key), cmp.Compare(a.Run, b.Run), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Level, b.Level),
		)
	})
	if len(c.kept) >= MaxSamples {
		c.kept = slices.Clip(c.kept[:MaxSamples])
		c.full, c.cutoff = true, c.kept[MaxSamples-1].key
	}
}

// Classes returns the classes, sorted by transformation and level: one class for each transformation or, if the levels
// of a transformation differ, one class for each level.
//
// Levels differ if the level explains at least half of the variance of runtimes, or of memory, beyond what it would
// explain by chance: ε² = (SSB − (k−1)·SSW/(n−k)) ÷ (SSB + SSW) of a one-way analysis of variance (Kelley 1935), with k
// levels and n tasks, and n − k of 8 or more. For two levels, this is significant at 1.3 % or better. For large numbers
// of tasks, the size of the effect is decisive, not its significance.
func (p *Profile) Classes() []*Class {
	var all []*Class
	for _, name := range slices.Sorted(maps.Keys(p.kinds)) {
		levels := p.kinds[name]
		if !differ(levels) {
			all = append(all, pooled(levels))
			continue
		}
		for _, level := range slices.Sorted(maps.Keys(levels)) {
			levels[level].trim()
			all = append(all, levels[level])
		}
	}
	return all
}

const (
	minExplained = 0.5 // minimum share of the variance for levels to differ
	minFreedom   = 8   // minimum of n - k
)

func differ(levels map[int]*Class) bool {
	return len(levels) > 1 && (explained(levels, Runtime) >= minExplained || explained(levels, Memory) >= minExplained)
}

// explained returns ε² of a metric, or 0 if there are too few tasks to compute it.
func explained(levels map[int]*Class, m Metric) float64 {
	var all Stat
	var within float64
	groups := 0
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		if s := levels[level].stats[m]; s.Count > 0 {
			all = all.merged(s)
			within += s.squares()
			groups++
		}
	}
	freedom := all.Count - int64(groups)
	total := all.squares()
	if groups < 2 || freedom < minFreedom || total == 0 {
		return 0
	}
	return (total - within - float64(groups-1)*within/float64(freedom)) / total
}

// Stat returns the summary of a metric of the class; its count is 0 if the metric was never measured.
func (c *Class) Stat(m Metric) Stat { return c.stats[m] }

// Count returns the number of tasks, which is the largest count of any metric.
func (c *Class) Count() int64 {
	var n int64
	for _, s := range c.stats {
		n = max(n, s.Count)
	}
	return n
}

// Samples returns the kept samples, at most MaxSamples, in an order that does not depend on the order in which they
// were added.
func (c *Class) Samples() []Sample {
	c.trim()
	all := make([]Sample, len(c.kept))
	for i, k := range c.kept {
		all[i] = k.Sample
	}
	return all
}

// Quantiles returns the q-quantile of a metric for each q, from 0 to 1, computed from the kept samples. It returns nil
// if the metric was not measured for any of these samples.
func (c *Class) Quantiles(m Metric, qs ...float64) []float64 {
	c.trim()
	var values []float64
	for _, s := range c.kept {
		if v, ok := s.Values.Get(m); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	result := make([]float64, len(qs))
	for i, q := range qs {
		result[i] = quantile(values, q)
	}
	return result
}

// quantile returns the q-quantile of sorted values, interpolated as in type 7 of Hyndman and Fan (Sample quantiles in
// statistical packages, 1996). There must be at least one value; for q below 0 or above 1 the result is an extreme.
func quantile(sorted []float64, q float64) float64 {
	at := max(0, min(1, q)) * float64(len(sorted)-1)
	low := int(math.Floor(at))
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
