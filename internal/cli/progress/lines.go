package progress

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral"
)

// linePace is the minimum interval between two lines that differ only in counts.
const linePace = 5 * time.Second

// lines writes a line when the state or its reason changes, and otherwise from time to time.
type lines struct {
	w     io.Writer
	last  corral.Run
	wrote time.Time
}

func (l *lines) Show(_ context.Context, r corral.Run, now time.Time) {
	news := r.State != l.last.State || Reason(r, now) != Reason(l.last, now)
	counted := r.Tasks != l.last.Tasks && now.Sub(l.wrote) >= linePace
	if !news && !counted {
		return
	}
	l.last, l.wrote = r, now
	fmt.Fprintln(l.w, line(r, now))
}

func (l *lines) Close() {}

func line(r corral.Run, now time.Time) string {
	t := r.Tasks
	s := fmt.Sprintf("run %d %s: %d of %d done", r.ID, r.State, t.Done, t.Total)
	if !r.State.Over() {
		s += fmt.Sprintf(", %d running, %d ready", t.Running, t.Ready)
	}
	if t.Failed > 0 {
		s += fmt.Sprintf(", %d failed", t.Failed)
	}
	s += Left(r, now)
	if why := Reason(r, now); why != "" && !r.State.Over() { // the command itself prints why a run ended
		s += " (" + why + ")"
	}
	return Look{}.Line(Span{Plain, s})
}
