// Package follow shows a run's progress while it goes on: a bar on a terminal, plain lines elsewhere.
package follow

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// pace is how often corrald is asked for the run's counts.
const pace = 200 * time.Millisecond

// linePace is the least time between two plain lines that only count.
const linePace = 5 * time.Second

// A View shows the states of a run, one after the other.
type View interface {
	Show(r corral.Run, now time.Time)
	Close()
}

// New returns a view that writes to w: a bar if terminal, else plain lines, nothing if quiet.
func New(w io.Writer, terminal, quiet bool) View {
	switch {
	case quiet:
		return silent{}
	case terminal:
		return newBar(w)
	}
	return &lines{w: w}
}

// Run shows r on view until it is over and returns it as it is then. When ctx ends first it returns
// the last state seen and ctx's error; the run itself goes on.
func Run(ctx context.Context, cl *api.Client, r corral.Run, view View) (corral.Run, error) {
	defer view.Close()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		view.Show(r, time.Now())
		if r.State.Over() {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-ticker.C:
		}
		next, err := cl.Run(ctx, r.ID)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			return r, err
		}
		r = next
	}
}

type silent struct{}

func (silent) Show(corral.Run, time.Time) {}
func (silent) Close()                     {}

// lines writes a line when the state or its reason changes, and otherwise now and then.
type lines struct {
	w     io.Writer
	last  corral.Run
	wrote time.Time
}

func (l *lines) Show(r corral.Run, now time.Time) {
	news := r.State != l.last.State || r.Reason != l.last.Reason
	counted := r.Tasks != l.last.Tasks && now.Sub(l.wrote) >= linePace
	if !news && !counted {
		return
	}
	l.last, l.wrote = r, now
	fmt.Fprintln(l.w, line(r))
}

func (l *lines) Close() {}

func line(r corral.Run) string {
	t := r.Tasks
	s := fmt.Sprintf("run %d %s: %d of %d done, %d running, %d ready", r.ID, r.State, t.Done, t.Total, t.Running, t.Ready)
	if t.Failed > 0 {
		s += fmt.Sprintf(", %d failed", t.Failed)
	}
	if r.Reason != "" {
		s += " (" + r.Reason + ")"
	}
	return s
}

// bar draws the share of tasks that are done.
type bar struct {
	pw      progress.Writer
	tracker *progress.Tracker
	drawn   chan struct{} // closed when the last frame is drawn
	reason  string
}

func newBar(w io.Writer) *bar {
	b := &bar{pw: progress.NewWriter(), drawn: make(chan struct{})}
	b.pw.SetOutputWriter(w)
	b.pw.SetUpdateFrequency(pace / 2)
	b.pw.SetTrackerLength(30)
	b.pw.SetAutoStop(false)
	b.pw.Style().Visibility.ETA = true
	b.pw.Style().Visibility.Speed = true
	go func() {
		defer close(b.drawn)
		b.pw.Render()
	}()
	return b
}

func (b *bar) Show(r corral.Run, _ time.Time) {
	if b.tracker == nil {
		b.tracker = &progress.Tracker{Total: int64(r.Tasks.Total), Units: progress.UnitsDefault}
		b.pw.AppendTracker(b.tracker)
	}
	b.tracker.UpdateMessage(fmt.Sprintf("run %d %s, %d running", r.ID, r.State, r.Tasks.Running))
	b.tracker.SetValue(int64(r.Tasks.Done))
	if r.Reason != b.reason {
		b.reason = r.Reason
		b.pw.Log("%s", line(r))
	}
	if r.State.Over() && r.State != corral.RunSucceeded {
		b.tracker.MarkAsErrored()
	}
}

func (b *bar) Close() {
	b.pw.Stop()
	<-b.drawn
}
