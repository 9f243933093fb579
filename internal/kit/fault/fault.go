// Package fault is the door through which corrald's actions leave the process: commands at sites and in HTCondor's
// pools, downloads, and what is written into the database. Each has a point, a name by which a test can have it fail.
//
// What Corral promises of crashes is a promise about these actions: between the intent that is recorded before one and
// the answer that is recorded after it, anything may happen. So a test plays it: for every point and every kind of
// fault it runs corrald through a life and asks whether the end is that of an undisturbed one. Without a plan, as users
// have it, an action costs one comparison more.
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

// A Kind is what goes wrong.
type Kind string

const (
	Crash      Kind = "crash"       // the process is killed in place of the action
	CrashAfter Kind = "crash-after" // the process is killed once the action is done, before anybody hears of it
	Error      Kind = "error"       // the action is not done, and fails
	Lost       Kind = "lost"        // the action is done, and its answer is lost
	Timeout    Kind = "timeout"     // the action is not done, and there is no answer for a while, and then none at all
	Slow       Kind = "slow"        // the action is done, after a while
)

// Kinds are all of them.
var Kinds = []Kind{Crash, CrashAfter, Error, Lost, Timeout, Slow}

// aWhile is long for an action, and short for a test.
const aWhile = 2 * time.Second

// An Injected error is what an action ends with that a plan has fail.
type Injected struct {
	Point Point
	Kind  Kind
}

func (e *Injected) Error() string {
	return fmt.Sprintf("%s: a fault was asked for: %s", e.Point, e.Kind)
}

// A rule of a plan has the actions of a point fail, from one of them on, so many times.
type rule struct {
	kind  Kind
	first int
	times int
}

// A plan is what is to fail in this process. It counts the actions of each point.
type plan struct {
	lg    *slog.Logger
	rules map[Point]rule
	trace bool

	mu   sync.Mutex
	seen map[Point]int
}

// planned is nil in a process of which nothing is to fail.
var planned atomic.Pointer[plan]

// Set has actions of this process fail. The text is "trace", which only logs each action, or a list, with commas
// between, of
//
//	POINT=KIND[@N][xM]
//
// N is which action of the point is the first to fail, M how many in a row do; both are 1 by default. An empty text
// changes nothing. Each fault is logged before it happens.
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
			return nil, fmt.Errorf("%.80q is no fault: want POINT=KIND[@N][xM] with a known point and kind", word)
		}
		if numbers != "" {
			first, times, several := strings.Cut(numbers, "x")
			var wrong error
			if r.first, wrong = strconv.Atoi(first); wrong == nil && several {
				r.times, wrong = strconv.Atoi(times)
			}
			if wrong != nil || r.first < 1 || r.times < 1 {
				return nil, fmt.Errorf("%.80q is no fault: want numbers of 1 or more behind @", word)
			}
		}
		p.rules[Point(point)] = r
	}
	return p, nil
}

// next counts an action and returns what is to go wrong with it, empty if nothing is.
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

// What the log says of an action that is traced, and of one that is to fail.
const (
	Passed  = "fault point passed"
	Happens = "fault"
)

// At performs an action that leaves the process. Its error is the action's, or an *Injected.
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

// die ends the process as kill -9 and a power cut do: nothing is flushed, closed or said.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
