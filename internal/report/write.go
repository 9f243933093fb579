package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/picture"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"brief":   picture.Brief,
	"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"when":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"join":    func(all []string) string { return strings.Join(all, "; ") },
	"off":     off,
	"times":   func(ratio float64) string { return fmt.Sprintf("× %.2f", ratio) },
	"seconds": func(d corral.Seconds) float64 { return time.Duration(d).Seconds() },
}).Parse(pageText))

// off says by how much what happened differs from what was predicted.
func off(predicted, actual float64) string {
	if predicted <= 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(actual/predicted-1))
}

// Write writes the page.
func (r *Report) Write(w io.Writer) error {
	stairs := picture.StaircaseOf(r.Document)
	if r.Actual != nil {
		stairs.Actual = &r.taken
	}
	view := struct {
		*Report
		Stairs, Front template.HTML
	}{Report: r}
	var err error
	if view.Stairs, err = inline(stairs); err != nil {
		return err
	}
	if len(r.Document.Front) > 1 {
		if view.Front, err = inline(picture.FrontOf(r.Document)); err != nil {
			return err
		}
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// inline is a figure as an element of a page: SVG without the line that only a file begins with. Package picture has
// escaped the texts in it, so that it may stand as it is.
func inline(f picture.Figure) (template.HTML, error) {
	var drawn bytes.Buffer
	if err := picture.Write(&drawn, picture.SVG, f); err != nil {
		return "", err
	}
	_, element, _ := strings.Cut(drawn.String(), "<svg")
	return template.HTML("<svg" + element), nil
}
