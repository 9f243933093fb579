package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

func task(id, worker string, from, to float64) api.TaskStatus {
	return api.TaskStatus{ID: id, Worker: worker, StartedAt: after(from), EndedAt: after(to)}
}

// Fifty seconds are drawn with fifty characters, so that each character represents a second.
func TestChart(t *testing.T) {
	t.Parallel()
	still := task("merge.1", "w/1", 30, 0) // running; the end is that of an earlier attempt
	still.EndedAt = time.Time{}
	chart := progress.Chart{From: began, To: after(50), Now: after(40), Tasks: []api.TaskStatus{
		task("count.0", "w/0", 0, 10), task("count.1", "w/1", 0, 5.5), task("merge.0", "w/0", 20.25, 20.5), still,
		{ID: "merge.2"}, // not started
	}}
	look := progress.Look{Width: func() int { return 65 }}
	want := []string{
		"   worker 0  ██████████          ▂                             ",
		"   worker 1  █████▄                        ██████████          ",
		"             0s                                             50s",
	}
	if diff := cmp.Diff(want, chart.Draw(look, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChartLegend(t *testing.T) {
	t.Parallel()
	chart := progress.Chart{From: began, To: after(60), Now: after(60)}
	for i, kind := range []string{"one", "two", "three", "four", "five", "six"} {
		chart.Tasks = append(chart.Tasks, task(kind+".07", "w", float64(i), float64(i)+float64(i+1)/10))
	}
	lines := chart.Draw(progress.Look{Colour: true}, 0)
	legend := lines[len(lines)-1]
	for _, kind := range []string{"six", "five", "four", "three", "and 2 more"} {
		if !strings.Contains(legend, kind) {
			t.Errorf("the legend %q lacks %s", legend, kind)
		}
	}
	// A kind keeps its colour while other kinds are added: six has the colour of the sixth kind that ran.
	if !strings.Contains(legend, "\x1b[96m█ \x1b[0m\x1b[2msix") || !strings.Contains(lines[0], "\x1b[36m") {
		t.Errorf("the colours are not those of the order in which kinds ran: %q", lines)
	}
}

func TestChartOfNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []progress.Chart{{}, {From: after(1), To: began}} {
		if got := c.Draw(progress.Look{}, 0); got != nil {
			t.Errorf("%+v is drawn as %q, want nothing", c, got)
		}
	}
	if got := (progress.Chart{From: began, To: after(1)}).Draw(progress.Look{Width: func() int { return 20 }}, 0); got != nil {
		t.Errorf("on 20 columns it is drawn as %q, want nothing", got)
	}
}

// Rows are as wide as the scale and fit the terminal, and a character is filled exactly where a task ran, whenever
// tasks ran.
func TestChartProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(30, 120).Draw(t, "width")
		chart := progress.Chart{From: began, To: after(100), Now: after(100)}
		for range rapid.IntRange(1, 8).Draw(t, "tasks") {
			from := rapid.Float64Range(-20, 110).Draw(t, "from")
			to := from + rapid.Float64Range(0, 50).Draw(t, "length")
			chart.Tasks = append(chart.Tasks, task("t.1", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "worker"), from, to))
		}
		lines := chart.Draw(progress.Look{Width: func() int { return width }}, 0)
		cells := min(width-1, 80) - 11
		for _, row := range lines[:len(lines)-1] {
			if n := len([]rune(row)); n != 10+cells {
				t.Fatalf("a row of %d characters, want %d: %q", n, 10+cells, row)
			}
		}
		busy := strings.ContainsAny(strings.Join(lines, ""), "▁▂▃▄▅▆▇█")
		ran := false
		for _, k := range chart.Tasks {
			from, to := max(k.StartedAt.Sub(began), 0), min(k.EndedAt.Sub(began), 100*time.Second)
			ran = ran || to-from > 100*time.Second/time.Duration(cells)/4 // otherwise too short to show
		}
		if ran && !busy {
			t.Fatalf("a worker was busy and the chart is empty: %q", lines)
		}
	})
}
