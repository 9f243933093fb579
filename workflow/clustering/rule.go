package clustering

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/timetext"
)

// A Rule specifies how the tasks of a workflow are grouped into jobs. The zero value makes each task a job of its own.
type Rule struct {
	Kind   Kind
	Groups int            // for Horizontal: maximum number of jobs per level, unless its tasks have different needs
	Target corral.Seconds // for ByRuntime: maximum estimated time of a job of several tasks
}

// A Kind is the criterion by which tasks share a job.
type Kind string

const (
	None       Kind = ""           // written as none
	Horizontal Kind = "horizontal" // tasks of one level, about the same number in each job
	ByRuntime  Kind = "runtime"    // tasks of one level, about the same total time in each job
	ByLabel    Kind = "label"      // tasks with the same label in the workflow
	Vertical   Kind = "vertical"   // a task with its only child, if it is the child's only parent
	Auto       Kind = "auto"       // the kind with the shortest predicted makespan, by which it is replaced
)

// Nothing is the text form of None.
const Nothing = "none"

// Levels returns a rule that makes at most the given number of jobs per level.
func Levels(groups int) Rule { return Rule{Kind: Horizontal, Groups: groups} }

// Lasting returns a rule that makes jobs of about the given length from each level.
func Lasting(target time.Duration) Rule { return Rule{Kind: ByRuntime, Target: corral.Seconds(target)} }

// Parse parses a rule: none or the empty text, horizontal=N with N at least 1, runtime=D with D at least a millisecond,
// label, vertical, or auto.
func Parse(s string) (Rule, error) {
	kind, value, given := strings.Cut(s, "=")
	switch kind := Kind(kind); kind {
	case Horizontal:
		if n, err := strconv.Atoi(value); err == nil && n >= 1 {
			return Levels(n), nil
		}
		return Rule{}, fmt.Errorf("%q must be horizontal=N with N at least 1", s)
	case ByRuntime:
		d, err := timetext.Duration(value)
		if err == nil && d < time.Millisecond {
			err = fmt.Errorf("%s is shorter than 1ms", d)
		}
		if err != nil {
			return Rule{}, fmt.Errorf("%q must be runtime=D with a duration, as in runtime=5m: %w", s, err)
		}
		return Lasting(d), nil
	case ByLabel, Vertical, Auto:
		if !given {
			return Rule{Kind: kind}, nil
		}
	case None, Nothing:
		if !given {
			return Rule{}, nil
		}
	}
	return Rule{}, fmt.Errorf("%q must be none, horizontal=N, runtime=D, label, vertical or auto", s)
}

// String formats the rule in the syntax of Parse.
func (c Rule) String() string {
	switch c.Kind {
	case None:
		return Nothing
	case Horizontal:
		return fmt.Sprintf("%s=%d", c.Kind, c.Groups)
	case ByRuntime:
		return fmt.Sprintf("%s=%s", c.Kind, time.Duration(c.Target))
	}
	return string(c.Kind)
}

// MarshalText formats the rule in the syntax of Parse.
func (c Rule) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the rule in the same way as Parse.
func (c *Rule) UnmarshalText(text []byte) (err error) {
	*c, err = Parse(string(text))
	return err
}
