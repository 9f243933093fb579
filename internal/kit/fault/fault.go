// Package fault wraps the actions of corrald that affect the outside world: commands at sites and in HTCondor pools,
// downloads, and writes to the database. Each action has a point: a name with which a test can make the action fail.
//
// Corral's guarantees for crashes are guarantees about these actions: between the intent recorded before an action and
// the answer recorded after it, anything may happen. So a test simulates such faults: for every point and every kind of
// fault, it runs a scenario with corrald and compares the result with that of an undisturbed run. Without a plan, as in
// production, an action costs one additional comparison.
package fault

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Kind is a kind of fault.
type Kind string

const (
	Crash      Kind = "crash"       // the process is killed in place of the action
	CrashAfter Kind = "crash-after" // the process is killed when the action is complete, before the result is used
	Error      Kind = "error"       // the action is not performed, and fails
	Lost       Kind = "lost"        // the action is performed, and its answer is lost
	Timeout    Kind = "timeout"     // the action is not performed, and fails after a while without an answer
	Slow       Kind = "slow"        // the action is performed after a while
)

// Kinds lists all kinds.
var Kinds = []Kind{Crash, CrashAfter, Error, Lost, Timeout, Slow}

// aWhile is the delay of a Slow or Timeout fault: long for an action, and short for a test.
const aWhile = 2 * time.Second

// An Injected error is the result of an action that a plan makes fail.
type Injected struct {
	Point Point
	Kind  Kind
}

func (e *Injected) Error() string {
	return fmt.Sprintf("%s: injected fault: %s", e.Point, e.Kind)
}

// A rule makes a number of actions of a point fail, given by times; the field first is the number of the first such
// action.
type rule struct {
	kind  Kind
	first int
	times int
}

// A plan lists the faults for this process. It counts the actions of each point.
type plan struct {
	lg    *slog.Logger
	rules map[Point]rule
	trace bool

	mu   sync.Mutex
	seen map[Point]int
}

// planned is nil in a process without faults.
var planned atomic.Pointer[plan]

// Set makes actions of this process fail. The text is "trace", which only logs each action, or a comma-separated list
// of
//
//	POINT=KIND[@N][xM]
//
// N is the number of the point's first action to fail, and M is the number of consecutive actions that fail; both are 1
// by default. An empty text changes nothing. Each fault is logged before it happens.
func Set(text string, lg *slog.Logger) error {
	if text == "" {
		return nil
	}
	p, err := parse(text)
	if err != nil {
		return err
	}
	p.lg = lg
	planned.Store(p)
	return nil
}

func parse(text string) (*plan, error) {
	p := &plan{rules: map[Point]rule{}, seen: map[Point]int{}}
	for word := range strings.SplitSeq(text, ",") {
		if word == "trace" {
			p.trace = true
			continue
		}
		point, what, _ := strings.Cut(word, "=")
		kind, numbers, _ := strings.Cut(what, "@")
		r := rule{kind: Kind(kind), first: 1, times: 1}
		if !slices.Contains(Points, Point(point)) || !slices.Contains(Kinds, r.kind) {
			return nil, fmt.Errorf("%.80q is not a fault: want POINT=KIND[@N][xM] with a known point and kind", word)
		}
		if numbers != "" {
			first, times, several := strings.Cut(numbers, "x")
			var wrong error
			if r.first, wrong = strconv.Atoi(first); wrong == nil && several {
				r.times, wrong = strconv.Atoi(times)
			}
			if wrong != nil || r.first < 1 || r.times < 1 {
				return nil, fmt.Errorf("%.80q is not a fault: want numbers of at least 1 after @", word)
			}
		}
		p.rules[Point(point)] = r
	}
	return p, nil
}

// next counts an action and returns the fault for it, or "" if there is no fault.
func (p *plan) next(at Point) Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[at]++
	r, n := p.rules[at], p.seen[at]
	if n < r.first || n >= r.first+r.times {
		if p.trace {
			p.lg.Info(Passed, "point", at, "n", n)
		}
		return ""
	}
	p.lg.Warn(Happens, "point", at, "kind", r.kind, "n", n)
	return r.kind
}

// Log messages for a traced action, and for a fault.
const (
	Passed  = "fault point passed"
	Happens = "fault"
)

// At performs an action. It returns the action's error, or an *Injected.
func At[T any](ctx context.Context, p Point, act func(context.Context) (T, error)) (T, error) {
	plan := planned.Load()
	if plan == nil {
		return act(ctx)
	}
	kind := plan.next(p)
	switch kind {
	case Crash:
		die()
	case Slow, Timeout:
		wait, cancel := context.WithTimeout(ctx, aWhile)
		<-wait.Done()
		cancel()
	}
	if kind == Error || kind == Timeout {
		var none T
		return none, &Injected{p, kind}
	}
	got, err := act(ctx)
	switch kind {
	case CrashAfter:
		die()
	case Lost:
		var none T
		return none, &Injected{p, kind}
	}
	return got, err
}

// Do is At for an action without a result.
func Do(ctx context.Context, p Point, act func(context.Context) error) error {
	_, err := At(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, act(ctx) })
	return err
}

// die ends the process like kill -9 or a power failure: nothing is flushed, closed or reported.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
