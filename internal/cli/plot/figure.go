package plot

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A Staircase shows two numbers of cpus over time: the cpus that pilots hold, and the cpus that tasks use.
type Staircase struct {
	Title, Subtitle string
	Since           string // the event to which times are relative; empty: the plan's start
	Held, Busy      Levels
	Actual          *Actual        // nil if the plan was not run
	Deadline        corral.Seconds // 0: no deadline
}

// Actual contains the actual values, which are drawn over the planned values.
type Actual struct {
	Held, Busy Levels
	Marks      []Mark
}

// A Mark is an instant that is labelled with a short word.
type Mark struct {
	At   corral.Seconds
	Text string
}

// A Front shows the considered plans, by makespan, and the chosen plan.
type Front struct {
	Points []plan.Point
	Chosen plan.Point
}

// StaircaseOf returns the predicted staircase of a plan.
func StaircaseOf(p *plan.Plan) Staircase {
	return Staircase{
		Title: short(p.Workflow),
		Subtitle: fmt.Sprintf("makespan %s, cost %s, waste %.0f %%", Brief(p.Makespan), p.Cost.Brief(),
			100*p.Waste),
		Held: Held(p), Busy: Busy(p), Deadline: p.Goal.Deadline,
	}
}

// FrontOf returns the front from which a plan was chosen.
func FrontOf(p *plan.Plan) Front { return Front{p.Front, p.Point} }

// End returns the last instant of the picture. It ignores a deadline far in the future, which would make the steps
// before the deadline too narrow to see.
func (s Staircase) End() corral.Seconds {
	end := max(s.Held.End(), s.Busy.End())
	if s.Actual != nil {
		end = max(end, s.Actual.Held.End(), s.Actual.Busy.End())
	}
	if s.Deadline <= 2*end {
		end = max(end, s.Deadline)
	}
	return end
}

// Brief formats a time, rounded to tenths of a second.
func Brief(d corral.Seconds) string { return time.Duration(d).Round(100 * time.Millisecond).String() }

// maxTitle is the maximum length of a name in a picture, in characters.
const maxTitle = 60

// short returns a name in a form that can be drawn: on one line, with characters that XML allows, and not too long.
func short(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, name)
	if utf8.RuneCountInString(name) > maxTitle {
		name = string([]rune(name)[:maxTitle-1]) + "…"
	}
	return name
}
