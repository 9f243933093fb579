package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

// A stage prints the demo's output: a label and text for each step. On a terminal the last lines change while a step is
// in progress.
type stage struct {
	out    io.Writer
	look   progress.Look // for lines that change
	text   progress.Look // for permanent lines, which may wrap but are not cut
	region *progress.Region
}

func newStage(out io.Writer, look progress.Look) stage {
	return stage{out: out, look: look, text: progress.Look{Colour: look.Colour}, region: progress.NewRegion(out)}
}

// indent is the column at which the text begins, after the labels.
const indent = 11

// title writes a line that does not belong to any step.
func (s *stage) title(text, rest string) {
	s.draw("")
	s.draw(s.text.Line(progress.Span{Colour: progress.Bold, Text: text}))
	if rest != "" {
		s.draw(s.text.Line(progress.Span{Colour: progress.Faint, Text: rest}))
	}
}

// doing shows on a terminal, until the next line is written, what a step is waiting for.
func (s *stage) doing(what string) {
	if s.look.Live() {
		s.region.Draw("",
			s.look.Line(progress.Span{Colour: progress.Faint, Text: strings.Repeat(" ", indent) + what + " …"}))
	}
}

// say writes the first line of a step, and more writes the other lines.
func (s *stage) say(label, format string, args ...any) {
	s.draw("", s.text.Line(
		progress.Span{Colour: progress.Good, Text: fmt.Sprintf("%-*s", indent, label)},
		progress.Span{Text: fmt.Sprintf(format, args...)}))
}

func (s *stage) more(format string, args ...any) {
	s.draw(s.text.Line(progress.Span{Text: strings.Repeat(" ", indent) + fmt.Sprintf(format, args...)}))
}

// first returns a function that writes the first of several lines with say and the other lines with more.
func (s *stage) first(label string) func(format string, args ...any) {
	said := false
	return func(format string, args ...any) {
		if said {
			s.more(format, args...)
			return
		}
		said = true
		s.say(label, format, args...)
	}
}

// draw writes permanent lines.
func (s *stage) draw(lines ...string) {
	s.region.Clear()
	for _, l := range lines {
		fmt.Fprintln(s.out, strings.TrimRight(l, " "))
	}
}

// view returns a view that shows the run while it is in progress: on a terminal, the run's progress above the activity
// of its workers, on a scale as long as the predicted makespan.
func (s *stage) view(cl *api.Client, predicted time.Duration) progress.View {
	if !s.look.Live() {
		return progress.New(indented{s.out}, s.look)
	}
	return &live{stage: s, cl: cl, predicted: predicted}
}

// indented writes lines in the column after the labels.
type indented struct{ w io.Writer }

func (i indented) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(i.w, "%*s%s", indent, "", line)
	return len(line), err
}

type live struct {
	*stage
	cl        *api.Client
	predicted time.Duration
}

func (l *live) Show(ctx context.Context, r corral.Run, now time.Time) {
	tasks, err := l.cl.RunTasks(ctx, r.ID)
	if err != nil {
		return // the next update, or the update of the run, reports the error
	}
	end := r.CreatedAt.Add(l.predicted)
	if now.After(end) {
		end = now
	}
	chart := progress.Chart{Tasks: tasks, From: r.CreatedAt, To: end, Now: now}
	lines := append([]string{""}, progress.Progress(l.look, fmt.Sprintf("%-*s", indent, "workflow"), r, now)...)
	l.region.Draw(append(lines, chart.Draw(l.look, indent)...)...)
}

func (l *live) Close() { l.region.Clear() }

// result shows the first lines of the workflow's report.
func (s *stage) result(report string) {
	const shown = 17 // lines up to the end of the table of word lengths; lists of words and sites follow
	lines := strings.Split(strings.TrimSpace(report), "\n")
	s.say("result", "equal, byte by byte, to that of a single pass over the genome:")
	for _, l := range lines[:min(shown, len(lines))] {
		s.draw(s.text.Line(progress.Span{Text: "  " + l})) // the report's tables are as wide as a terminal
	}
	if rest := len(lines) - shown; rest > 0 {
		s.draw(s.text.Line(progress.Span{Colour: progress.Faint,
			Text: fmt.Sprintf("  … and %d lines more; corral demo --keep keeps them", rest)}))
	}
}

// timeline draws the nine events of a provisioning request on one scale, and the times between them.
func (s *stage) timeline(events []corral.TimelineEvent) {
	if len(events) == 0 {
		return
	}
	const width = 28
	first, last := events[0].At, events[len(events)-1].At
	phases := map[corral.TimelineEvent]string{} // phases by the event that ends them
	for _, p := range corral.Phases(events) {
		phases[p.To] = p.Name + " " + round(p.Took())
	}
	s.say("timeline", "the site's setup job, the pilots, the site's cleanup job")
	for _, e := range events {
		since := e.At.Sub(first)
		mark := int(since * (width - 1) / max(last.Sub(first), time.Millisecond))
		s.draw(s.text.Line(
			progress.Span{Text: fmt.Sprintf("%*s%-17s%8s ", indent, "", e.Name, round(since))},
			progress.Span{Colour: progress.Faint, Text: strings.Repeat("·", mark)},
			progress.Span{Colour: progress.Good, Text: "●"},
			progress.Span{Colour: progress.Faint, Text: strings.Repeat("·", width-1-mark) + " "},
			progress.Span{Text: phases[e]}))
	}
}

// round formats a duration with about three digits.
func round(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
