package profile

import (
	"fmt"
	"math"
)

// A Rule is a rule by which one kind of unusual behaviour is recognised.
type Rule string

// These are the rules. Each comment describes the Number of a Finding, and the values for which the rule applies.
const (
	Rereads       Rule = "rereads"       // bytes read ÷ bytes of input, 2 or more
	Overallocates Rule = "overallocates" // peak of the address space ÷ peak of memory, 10 or more
	Parallel      Rule = "parallel"      // cpu time ÷ runtime, above 1.05
	Waits         Rule = "waits"         // cpu time ÷ runtime, below 0.1
	Scattered     Rule = "scattered"     // sd ÷ mean of the runtime, 1 or more
)

const (
	manyReads      = 2
	manyAllocated  = 10
	littleCPU      = 0.1
	scatteredTasks = 3 // minimum number of tasks, because two tasks may differ by chance
)

// A Finding describes unusual behaviour of the tasks of a class. A planner takes the behaviour into account; users may
// want to correct it.
type Finding struct {
	Transformation string  `json:"transformation"`
	Level          int     `json:"level"` // AllLevels: any level
	Rule           Rule    `json:"rule"`
	Number         float64 `json:"number"`
	Sentence       string  `json:"sentence"` // describes the behaviour; to be written after the transformation's name
}

// Findings returns the findings about the classes of p, sorted by class and then by rule. All numbers are computed from
// means.
func (p *Profile) Findings() []Finding {
	var all []Finding
	for _, c := range p.Classes() {
		all = append(all, c.findings()...)
	}
	return all
}

func (c *Class) findings() []Finding {
	var all []Finding
	found := func(r Rule, number float64, format string, args ...any) {
		all = append(all, Finding{c.Transformation, c.Level, r, number, fmt.Sprintf(format, args...)})
	}
	if x := c.ratio(Read, Input); x >= manyReads {
		found(Rereads, x, "reads %s × its input", short(x))
	}
	if x := c.ratio(Virtual, Memory); x >= manyAllocated {
		found(Overallocates, x, "allocates %s × what it uses", short(x))
	}
	if s := c.stats[Utilization]; s.Count > 0 {
		switch {
		case c.cpus() > 1:
			found(Parallel, s.Mean, "uses %.0f %% of a cpu: it needs %d cpus", 100*s.Mean, c.cpus())
		case s.Mean < littleCPU:
			found(Waits, s.Mean, "uses %.0f %% of a cpu: it waits, most likely for input and output", 100*s.Mean)
		}
	}
	if s := c.stats[Runtime]; s.Count >= scatteredTasks && s.cv() >= 1 {
		found(Scattered, s.cv(), "varies: the standard deviation of its runtime is %.2f × the mean", s.cv())
	}
	return all
}

// ratio returns the ratio of the means of two metrics, or 0 if one of the means is not known.
func (c *Class) ratio(a, b Metric) float64 {
	if c.stats[a].Count == 0 || c.stats[b].Mean == 0 {
		return 0
	}
	return c.stats[a].Mean / c.stats[b].Mean
}

// short formats a ratio with two significant digits, or with all digits of its integer part.
func short(x float64) string {
	if x < 9.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", math.Round(x))
}
