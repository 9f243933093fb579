package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

func at(d time.Duration) corral.Seconds { return corral.Seconds(d) }

// figure61 returns a plan like the one in Figure 6.1 of the thesis: 5, 1 and 5 cpus for an hour each.
func figure61() *plan.Plan {
	p := &plan.Plan{Workflow: "figure 6.1", Feasible: true, Goal: plan.Goal{Deadline: at(4 * time.Hour)}}
	p.Pilots = []plan.Pilot{
		{Site: "a", Shape: corral.Shape{Hosts: 1, CPUs: 1}, Start: 0, Ready: 0, End: at(3 * time.Hour)},
		{Site: "a", Shape: corral.Shape{Hosts: 2, CPUs: 2}, Start: 0, Ready: 0, End: at(time.Hour)},
		{Site: "a",
			Shape: corral.Shape{Hosts: 1, CPUs: 4},
			Start: at(2 * time.Hour), Ready: at(2 * time.Hour), End: at(3 * time.Hour)},
	}
	p.Schedule = []plan.Placement{
		{ID: "first", Kind: "wide", CPUs: 5, Start: 0, End: at(time.Hour)},
		{ID: "second", Kind: "narrow", Start: at(time.Hour), End: at(2 * time.Hour)},
		{ID: "third", Kind: "wide", CPUs: 4, Start: at(2 * time.Hour), End: at(150 * time.Minute)},
	}
	p.Point = plan.Point{Makespan: at(3 * time.Hour), CoreHours: 11, Cost: cost.Amount{Money: 11_000_000, Unit: "ch"},
		PeakCPUs: 5}
	p.Front = []plan.Point{p.Point, {Makespan: at(5 * time.Hour), CoreHours: 10.5}}
	return p
}

// TestStaircaseFollowsThePlan: the drawing shows the sum of the cpus that pilots hold, and the sum of the cpus that
// tasks use.
func TestStaircaseFollowsThePlan(t *testing.T) {
	t.Parallel()
	got := plot.StaircaseOf(figure61())
	want := plot.Staircase{
		Title: "figure 6.1", Subtitle: "makespan 3h0m0s, cost 11ch, waste 0 %",
		Held: plot.Levels{{0, 5}, {at(time.Hour), 1}, {at(2 * time.Hour), 5}, {at(3 * time.Hour), 0}},
		Busy: plot.Levels{{0, 5}, {at(time.Hour), 1}, {at(2 * time.Hour), 4}, {at(150 * time.Minute), 0}},

		Deadline: at(4 * time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("staircase (-want +got):\n%s", diff)
	}
	if got.End() != got.Deadline {
		t.Errorf("the picture ends at %s, want the deadline, which is near", got.End())
	}
	got.Deadline = at(100 * time.Hour)
	if got.End() != at(3*time.Hour) {
		t.Errorf("the picture ends at %s, want the last release: the deadline is far away", got.End())
	}
	front := plot.FrontOf(figure61())
	if diff := cmp.Diff(figure61().Front, front.Points); diff != "" || front.Chosen != figure61().Point {
		t.Errorf("front with %+v chosen (-want +got):\n%s", front.Chosen, diff)
	}
}

// TestSumAndThin: levels, whether thinned or not, have the same area as their spans, start and end at the same times,
// and end at 0.
func TestSumAndThin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.Int64Range(0, 1000)
		var spans []plot.Span
		var area float64
		for range rapid.IntRange(1, 60).Draw(t, "spans") {
			from := at(time.Duration(second.Draw(t, "from")) * time.Second)
			length := at(time.Duration(second.Draw(t, "length")) * time.Second)
			cpus := rapid.IntRange(1, 9).Draw(t, "cpus")
			spans = append(spans, plot.Span{From: from, To: from + length, CPUs: cpus})
			area += float64(cpus) * time.Duration(length).Seconds()
		}
		all := plot.Sum(spans)
		for _, l := range []plot.Levels{all, all.Thin(rapid.IntRange(1, 40).Draw(t, "parts"))} {
			if got := areaOf(l); got < area-1e-3 || got > area+1e-3 {
				t.Errorf("area %g of %v, want %g", got, l, area)
			}
			if len(l) > 0 && (l[0].From != all[0].From || l.End() != all.End() || l[len(l)-1].CPUs != 0) {
				t.Errorf("%v does not begin and end with %v", l, all)
			}
		}
	})
}

func areaOf(l plot.Levels) (sum float64) {
	for i := range max(1, len(l)) - 1 {
		sum += l[i].CPUs * time.Duration(l[i+1].From-l[i].From).Seconds()
	}
	return sum
}

// TestPicturesAreWellFormed: both formats are well formed, whatever the workflow's name and however little there is to
// draw.
func TestPicturesAreWellFormed(t *testing.T) {
	t.Parallel()
	odd := figure61()
	odd.Workflow = "<script>alert(1)</script> & \"x\" \x01\n" + strings.Repeat("long ", 60)
	over := plot.StaircaseOf(figure61())
	over.Actual = &plot.Actual{Held: over.Held, Busy: over.Busy, Marks: []plot.Mark{{At: at(time.Minute), Text: "1"}}}
	for i, figures := range [][]plot.Figure{
		{plot.StaircaseOf(figure61()), plot.FrontOf(figure61())},
		{plot.StaircaseOf(odd)},
		{plot.StaircaseOf(&plan.Plan{}), plot.FrontOf(&plan.Plan{})},
		{over},
		{plot.Chart{Title: "<b>", X: "x", Y: "y", Series: []plot.Series{
			{Name: "a", Line: true, At: []plot.XY{{X: 1, Y: 1}, {X: 2, Y: 3}}}, {Name: "b", Dots: true, At: []plot.XY{{}}},
			{Name: "none"}}}, plot.Chart{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var dots, text bytes.Buffer
			if err := plot.Write(&dots, plot.PNG, figures...); err != nil {
				t.Fatal(err)
			}
			if img, err := png.Decode(&dots); err != nil || img.Bounds().Dy() != 675*len(figures) {
				t.Errorf("PNG: %v", err)
			}
			if err := plot.Write(&text, plot.SVG, figures...); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text.String(), "<script") || strings.Contains(text.String(), "NaN") {
				t.Errorf("SVG has a script, or what is no number:\n%s", &text)
			}
			for d := xml.NewDecoder(&text); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("SVG: %v", err)
				}
			}
		})
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]plot.Format{"a.png": plot.PNG, "b/c.SVG": plot.SVG, "d.pdf": "", "png": ""} {
		got, err := plot.FormatOf(file)
		if got != want || (want == "") != (corral.KindOf(err) == corral.Invalid) {
			t.Errorf("FormatOf(%q) = %q, %v, want %q", file, got, err, want)
		}
	}
}
