package main

import (
	"bytes"
	"testing"
)

// All that was published is read, and each panel has something of it.
func TestPublishedFigures(t *testing.T) {
	t.Parallel()
	all, err := readFigures()
	if err != nil || len(all) != 482 {
		t.Fatalf("%d values: %v", len(all), err)
	}
	d := desk{long: true}
	for _, figure := range []string{"6.6", "6.7", "6.8", "6.10"} {
		for _, n := range d.panels(figure) {
			if _, ok := all[value{figure, n.application, string(n.kind), n.x, "SPSS", "best"}]; !ok {
				t.Errorf("nothing is known of %+v", n)
			}
		}
	}
}

// What is not known is refused.
func TestExecute(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"-figures", "6.8", "-rules", "both"}, &out, &errs); code != 2 {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// A whisker ends at the last value that is no outlier.
func TestWhisker(t *testing.T) {
	t.Parallel()
	if w := whisker([]float64{1, 2, 3, 4, 5, 100}); w != 5 {
		t.Errorf("it ends at %g", w)
	}
	if w := whisker([]float64{1, 1, 1}); w != 1 {
		t.Errorf("it ends at %g", w)
	}
}
