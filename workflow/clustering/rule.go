package clustering

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Rule says how tasks of a workflow become jobs. The zero value makes each task a job of its own.
type Rule struct {
	Kind   Kind
	Groups int            // of Horizontal: a level becomes at most so many jobs, unless its tasks need different things
	Target corral.Seconds // of ByRuntime: no job of several tasks is estimated to take longer
}

// A Kind names what tasks that share a job have in common.
type Kind string

const (
	None       Kind = ""           // written as none
	Horizontal Kind = "horizontal" // tasks of one level, about as many in each job
	ByRuntime  Kind = "runtime"    // tasks of one level, of about the same time in each job
	ByLabel    Kind = "label"      // tasks to which the workflow gives the same label
	Vertical   Kind = "vertical"   // a task with its only child, where it is the only parent
	Auto       Kind = "auto"       // what promises the shortest makespan; it becomes one of the others
)

// Nothing is how None is written.
const Nothing = "none"

// Levels makes at most so many jobs of each level.
func Levels(groups int) Rule { return Rule{Kind: Horizontal, Groups: groups} }

// Lasting makes jobs of each level that last about so long.
func Lasting(target time.Duration) Rule { return Rule{Kind: ByRuntime, Target: corral.Seconds(target)} }

// Parse reads none, which the empty text means too, horizontal=N with N at least 1, runtime=D with D at least
// a millisecond, label, vertical, or auto.
func Parse(s string) (Rule, error) {
	kind, value, given := strings.Cut(s, "=")
	switch kind := Kind(kind); kind {
	case Horizontal:
		if n, err := strconv.Atoi(value); err == nil && n >= 1 {
			return Levels(n), nil
		}
		return Rule{}, fmt.Errorf("%q is not horizontal=N with N at least 1", s)
	case ByRuntime:
		if d, err := time.ParseDuration(value); err == nil && d >= time.Millisecond {
			return Lasting(d), nil
		}
		return Rule{}, fmt.Errorf("%q is not runtime=D with a duration D of at least 1ms, as in runtime=5m", s)
	case ByLabel, Vertical, Auto:
		if !given {
			return Rule{Kind: kind}, nil
		}
	case None, Nothing:
		if !given {
			return Rule{}, nil
		}
	}
	return Rule{}, fmt.Errorf("%q is none of none, horizontal=N, runtime=D, label, vertical, auto", s)
}

// String writes it as Parse reads it.
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

// MarshalText writes it as Parse reads it.
func (c Rule) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads it as Parse does.
func (c *Rule) UnmarshalText(text []byte) (err error) {
	*c, err = Parse(string(text))
	return err
}
