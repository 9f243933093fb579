package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replay runs a command line, and returns its exit code and both outputs.
func replay(t *testing.T, line string, files ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(t.Context(), append(strings.Fields(line), files...), &out, &errs)
	return code, out.String(), errs.String()
}

var three = []string{"testdata/a.dax", "testdata/b.dax", "testdata/c.dax"}

// The worked example of three workflows (Juve 2012, E6.6), as published, as printed, and corrected.
func TestTheWorkedExample(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ flags, completed, cost string }{
		{"--algorithm dpds --published", "000", "18"},
		{"--algorithm wa-dpds --published", "100", "18"},
		{"--algorithm spss --published", "110", "18"},
		{"--algorithm spss --published --budget-test lt --fit-test lt --tie first", "101", "16"},
		{"--algorithm spss", "110", "17"},
		{"--algorithm wa-dpds --without path", "100", "18"},
	} {
		code, out, errs := replay(t, "ensemble plan --budget 18 --deadline 21600 --u-low 0.5 -o json "+tt.flags, three...)
		var got struct {
			Completed string `json:"completed"`
			Cost      struct {
				Amount json.Number `json:"amount"`
				Unit   string      `json:"unit"`
			} `json:"cost"`
		}
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("%s: exit %d: %s", tt.flags, code, errs)
		}
		if got.Completed != tt.completed || got.Cost.Amount.String() != tt.cost || got.Cost.Unit != "SU" {
			t.Errorf("%s: %+v, want %s at %s", tt.flags, got, tt.completed, tt.cost)
		}
	}
}

// The schedule and the workflows are written to files; what happens is read from one that no algorithm reads.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schedule, table, actual := filepath.Join(dir, "s"), filepath.Join(dir, "c"), filepath.Join(dir, "a")
	if err := os.WriteFile(actual, []byte(`{"a": {"z": 12000}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := replay(t, "ensemble plan --budget 18USD --deadline 6h --published --schedule "+schedule+" --csv "+
		table+" --actual "+actual+" --error 0,uniform:20%", three...)
	if code != 0 || !strings.HasPrefix(out, "110 by spss: cost 19USD of 18USD (false), makespan ") ||
		strings.Count(out, "\nerror ") != 2 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	text, _ := os.ReadFile(schedule)
	if lines := strings.Split(string(text), "\n"); len(lines) != 11 ||
		!strings.HasPrefix(lines[0], `{"workflow":"a","priority":0,"task":"a","vm":0,"start_s":0,"end_s":4200}`) {
		t.Errorf("schedule:\n%s", text)
	}
	if text, _ = os.ReadFile(table); !strings.Contains(string(text), "\n0,a,5,true,2") || strings.Count(string(text), "\n") != 4 {
		t.Errorf("workflows:\n%s", text)
	}
}

// A plan on the slots of a simulated site is compared with the same workflow without slots.
func TestSlots(t *testing.T) {
	t.Parallel()
	const site = " --background lublin:0.7 --cpus 64 --at 100h "
	if code, out, errs := replay(t, "slots list"+site); code != 0 || !strings.HasPrefix(out, "site,start_s,") {
		t.Errorf("list: exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := replay(t, "slots plan"+site, "testdata/w.dax"); code != 0 || !strings.Contains(out, `"best_effort_s"`) {
		t.Errorf("plan: exit %d: %s%s", code, out, errs)
	}
	code, out, errs := replay(t, "slots plan --compare"+site, "testdata/w.dax")
	if code != 0 || !strings.HasPrefix(out, "jobs\t") || strings.Count(out, "\tbest\n") != 1 {
		t.Errorf("compare: exit %d: %s%s", code, out, errs)
	}
}

// Bad input is refused with one sentence that names the place.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const good = "ensemble plan --budget 18 --deadline 6h "
	for line, want := range map[string]string{
		"ensemble":                             "replay: want ensemble plan, slots list or slots plan, and their flags",
		"ensemble plan --deadline 6h":          "replay: --budget: ",
		"ensemble plan --budget 18":            "replay: --deadline: 0s is not a positive duration",
		good + "--u-low 0.95 --algorithm dpds": "replay: --u-low: 0.95 is above --u-high, which is 0.9: give a lower one",
		good + "--without path":                "replay: --without: spss has no correction path",
		good + "--algorithm dpds --without x":  `replay: --without: "x" is none of `,
		good + "--margin 1USD":                 "replay: --margin: 1USD is not in SU, the budget's unit",
		good + "--alpha 1.5":                   "replay: --alpha: 1.5 is not between 0 and 1",
		good + "--actual testdata/none.json":   "replay: --actual: ",
		good + "-o xml":                        `replay: -o: "xml" is neither table nor json`,
		"slots list --background lublin:0.7":   "replay: --background: want lublin:LOAD ",
	} {
		if code, _, errs := replay(t, line, three...); code != 2 || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
}
