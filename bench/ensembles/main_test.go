package main

import (
	"bytes"
	"testing"
)

// All published figures are read, and each panel contains some of them.
func TestPublishedFigures(t *testing.T) {
	t.Parallel()
	all, err := readFigures()
	if err != nil || len(all) != 482 {
		t.Fatalf("%d values: %v", len(all), err)
	}
	d := desk{long: true, applications: applications}
	for _, figure := range []string{"6.6", "6.7", "6.8", "6.10"} {
		for _, n := range d.panels(figure) {
			if _, ok := all[value{figure, n.application, string(n.kind), n.x, "SPSS", "best"}]; !ok {
				t.Errorf("nothing is known of %+v", n)
			}
		}
	}
}

// Unknown names are refused.
func TestExecute(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	for _, args := range [][]string{{"-figures", "6.8", "-rules", "both"}, {"-applications", "sipht,broadband"}} {
		if code := execute(t.Context(), args, &out, &errs); code != 2 {
			t.Errorf("%q: exit %d: %s", args, code, &errs)
		}
	}
}

// A whisker ends at the last value that is not an outlier.
func TestWhisker(t *testing.T) {
	t.Parallel()
	if w := whisker([]float64{1, 2, 3, 4, 5, 100}); w != 5 {
		t.Errorf("it ends at %g", w)
	}
	if w := whisker([]float64{1, 1, 1}); w != 1 {
		t.Errorf("it ends at %g", w)
	}
}

// A violated claim is reported with its panel.
func TestBroken(t *testing.T) {
	t.Parallel()
	panel := func(figure, application string, x int, spss, dynamic, cost float64) played {
		return played{panel{figure: figure, family: family{application, "constant", 1}, x: x}, []standing{
			{algorithm: "DPDS", best: dynamic, costs: []float64{0.99}}, {algorithm: "WA-DPDS", costs: []float64{0.98}},
			{algorithm: "SPSS", best: spss, costs: []float64{cost}}}}
	}
	for _, tt := range []struct {
		name string
		played
		broken int
	}{
		{"SPSS is best for long tasks", panel("6.6", "sipht", 1, 0.9, 0.5, 1), 0},
		{"and is not", panel("6.6", "sipht", 1, 0.5, 0.9, 1), 1},
		{"Montage may be either", panel("6.6", "montage", 1, 0.5, 0.9, 1), 0},
		{"sixteen times as long", panel("6.7", "montage", 16, 0.5, 0.9, 1), 1},
		{"short tasks are the dynamic ones'", panel("6.7", "cybershake", 1, 0.9, 0.5, 1), 1},
		{"an error costs money", panel("6.8", "montage", 10, 0.5, 0.5, 1.1), 0},
		{"and does not", panel("6.8", "montage", 10, 0.5, 0.5, 1.01), 1},
		{"a delay, too", panel("6.10", "montage", 90, 0.5, 0.5, 1.2), 1},
	} {
		if got := (desk{}).broken([]played{tt.played}, nil); len(got) != tt.broken {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// Shortfalls of our plans are reported: too many worse cases, or an exceeded budget.
func TestMissed(t *testing.T) {
	t.Parallel()
	one := func(figure string, x int, n panel, best, asGood, over float64) played {
		n.figure, n.x = figure, x
		return played{n, []standing{{algorithm: "SPSS, guarded", asGood: asGood, over: over}, {algorithm: "rehearsal", best: best}}}
	}
	late := panel{delay: 300}
	for _, tt := range []struct {
		name string
		all  []played
		want int
	}{
		{"all is well", []played{one("6.6", 1, panel{}, 1, 0, 0), one("late", 20, late, 0.9, 0, 0), one("late", 50, late, 0, 0.8, 0)}, 0},
		{"exact, and worse", []played{one("6.6", 1, panel{}, 0.97, 0, 0), one("6.6", 1, panel{}, 1, 0, 0)}, 1},
		{"late, and worse", []played{one("late", 20, late, 0.8, 0, 0)}, 1},
		{"guarded, and worse", []played{one("late", 50, late, 0, 0.7, 0)}, 1},
		{"over the budget", []played{one("late", 50, late, 0, 0.9, 0.01)}, 1},
	} {
		if got := missed(tt.all); len(got) != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
