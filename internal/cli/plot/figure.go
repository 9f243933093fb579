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

// A Staircase is cpus over time: those that pilots hold, and those that tasks use.
type Staircase struct {
	Title, Subtitle string
	Since           string // what times count from; empty: the plan's beginning
	Held, Busy      Levels
	Actual          *Actual        // nil: nothing was run
	Deadline        corral.Seconds // 0: none
}

// Actual is what happened, to be drawn over what was planned.
type Actual struct {
	Held, Busy Levels
	Marks      []Mark
}

// A Mark is an instant with a word of few letters.
type Mark struct {
	At   corral.Seconds
	Text string
}

// A Front is plans that were considered, by makespan, and the one that was chosen.
type Front struct {
	Points []plan.Point
	Chosen plan.Point
}

// StaircaseOf is the staircase of a plan as it is predicted.
func StaircaseOf(p *plan.Plan) Staircase {
	return Staircase{
		Title: short(p.Workflow),
		Subtitle: fmt.Sprintf("makespan %s, cost %s, waste %.0f %%", Brief(p.Makespan), p.Cost.Brief(),
			100*p.Waste),
		Held: Held(p), Busy: Busy(p), Deadline: p.Goal.Deadline,
	}
}

// FrontOf is the front that a plan was chosen from.
func FrontOf(p *plan.Plan) Front { return Front{p.Front, p.Point} }

// End is the last instant of the picture. A deadline that is far away is left out, because the steps before it would be
// too narrow to be seen.
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

// Brief is a time for people.
func Brief(d corral.Seconds) string { return time.Duration(d).Round(100 * time.Millisecond).String() }

// maxTitle is how many characters of a name are shown.
const maxTitle = 60

// short is a name as it can be drawn: on one line, of characters that XML allows, and not too long.
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
