package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

//go:embed *.html
var texts embed.FS

var pages = template.Must(template.New("report").Funcs(template.FuncMap{
	"brief":   plot.Brief,
	"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"when":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"join":    func(all []string) string { return strings.Join(all, "; ") },
	"off":     off,
	"times":   func(ratio float64) string { return fmt.Sprintf("× %.2f", ratio) },
	"seconds": func(d corral.Seconds) float64 { return time.Duration(d).Seconds() },
	"bytes":   size,
	"fine":    fine,
}).ParseFS(texts, "*.html"))

// fine formats a time with enough digits for short tasks.
func fine(d corral.Seconds) string {
	if t := time.Duration(d); t < 10*time.Second {
		return t.Round(time.Millisecond).String()
	}
	return plot.Brief(d)
}

// size formats a number of bytes; the result for 0 is empty.
func size(n int64) string {
	if n == 0 {
		return ""
	}
	value, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}

// off formats the deviation of an actual value from the prediction.
func off(predicted, actual float64) string {
	if predicted <= 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(actual/predicted-1))
}

// Write writes the page.
func (r *Report) Write(w io.Writer) error {
	view := struct {
		*Report
		Stairs, Front template.HTML
	}{Report: r}
	var err error
	if view.Stairs, err = inline(r.stairs()); err != nil {
		return err
	}
	if len(r.Document.Front) > 1 {
		if view.Front, err = inline(plot.FrontOf(r.Document)); err != nil {
			return err
		}
	}
	return wrap.Errorf(pages.ExecuteTemplate(w, "page.html", view), "writing the report")
}

// Figures returns the pictures of the page.
func (r *Report) Figures() []plot.Figure {
	figures := []plot.Figure{r.stairs()}
	if len(r.Document.Front) > 1 {
		figures = append(figures, plot.FrontOf(r.Document))
	}
	return figures
}

// stairs returns the plan's staircase, with the actual values if they are known.
func (r *Report) stairs() plot.Staircase {
	s := plot.StaircaseOf(r.Document)
	if r.Actual != nil {
		s.Actual = &r.taken
	}
	return s
}

// inline returns a figure as an element of a page: SVG without the XML declaration of a file. Package plot has already
// escaped the texts in the figure, so no further escaping is needed.
func inline(f plot.Figure) (template.HTML, error) {
	var drawn bytes.Buffer
	if err := plot.Write(&drawn, plot.SVG, f); err != nil {
		return "", err
	}
	_, element, _ := strings.Cut(drawn.String(), "<svg")
	return template.HTML("<svg" + element), nil
}

// A share is a part of the time, together with its use.
type share struct {
	What  string
	Time  corral.Seconds
	Share float64 // share of the total time
}

// shares returns the shares of the time, with the names of their uses.
func (s TimeUse) shares() []share {
	all := s.Running + s.Dispatch + s.Idle + s.Waiting + s.Unneeded
	var shares []share
	for _, part := range []struct {
		what string
		time corral.Seconds
	}{
		{"running tasks", s.Running},
		{"dispatch: held, and idle while a task was ready", s.Dispatch},
		{"idle: held, and no task was ready", s.Idle},
		{"waiting for workers: not held, while a task was ready", s.Waiting},
		{"unneeded: not held, and no task was ready", s.Unneeded},
	} {
		shares = append(shares, share{part.what, part.time, float64(part.time) / float64(max(1, all))})
	}
	return shares
}

// Write writes the page of a run.
func (r *RunReport) Write(w io.Writer) error {
	view := struct {
		*RunReport
		Over     bool
		Shares   []share
		Pictures []template.HTML
		Stairs   template.HTML
	}{RunReport: r, Over: r.State.Over(), Shares: r.Spent.shares()}
	for _, figure := range r.figures {
		drawn, err := inline(figure)
		if err != nil {
			return err
		}
		view.Pictures = append(view.Pictures, drawn)
	}
	if r.Plan != nil {
		var err error
		if view.Stairs, err = inline(r.Plan.stairs()); err != nil {
			return err
		}
	}
	return wrap.Errorf(pages.ExecuteTemplate(w, "run.html", view), "writing the report")
}
