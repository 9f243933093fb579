package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A claim prints its figures, draws its plot and writes its table to the requested directory.
func TestBoundsArePrintedAndDrawn(t *testing.T) {
	t.Parallel()
	var printed, said bytes.Buffer
	out := t.TempDir()
	args := []string{"-out", out, "-instances", "../../workflow/formats/wfformat/testdata/wfcommons/instances", "bounds",
		"estimates"}
	if code := execute(t.Context(), args, &printed, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	for _, want := range []string{"## Lower bounds", "Of 5 plans 4 are at the lower bound, 5 within",
		"name a directory with more using -instances"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is not in\n%s", want, &printed)
		}
	}
	plot, err := os.ReadFile(filepath.Join(out, "bounds.svg"))
	if err != nil || !bytes.Contains(plot, []byte("<svg")) || bytes.Contains(plot, []byte("NaN")) || len(plot) > 100_000 {
		t.Errorf("the plot has %d bytes, %v", len(plot), err)
	}
	written, err := os.ReadFile(filepath.Join(out, "bounds.csv"))
	if err != nil || !bytes.HasPrefix(written, []byte("workflow,tasks,energetic,lower bound,plan,plan ÷ bound\n")) ||
		bytes.Count(written, []byte("\n")) != 6 {
		t.Errorf("the table is %q, %v", written, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"luck"}, `there is no "luck"`},
		{[]string{"-cases", "29"}, "-cases must be at least 30"},
		{[]string{"-what"}, "flag provided but not defined"},
	} {
		var printed, said bytes.Buffer
		if code := execute(t.Context(), tt.args, &printed, &said); code != 2 || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%q: exit code %d, %s", tt.args, code, &said)
		}
	}
}

// The interval of ten values, whose t is 2.262; a single value has no interval.
func TestInterval(t *testing.T) {
	t.Parallel()
	x := intervalOf([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if sd := math.Sqrt(55. / 6); x.mean != 5.5 || math.Abs(x.sd-sd) > 1e-12 ||
		math.Abs(x.half-2.262*sd/math.Sqrt(10)) > 0.005 {
		t.Errorf("%+v", x)
	}
	if one := intervalOf([]float64{7}); one.mean != 7 || !math.IsInf(one.half, 1) {
		t.Errorf("of one: %+v", one)
	}
}
