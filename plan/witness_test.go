package plan_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// long returns a plan with the given number of tasks.
func long(tasks int) *plan.Plan {
	p := &plan.Plan{Feasible: true}
	for i := range tasks {
		p.Schedule = append(p.Schedule, plan.Placement{ID: fmt.Sprint("t", i), Kind: "count", CPUs: 1,
			Start: corral.Seconds(i) * 1e6, End: corral.Seconds(i+1) * 1e6})
	}
	return p
}

// TestLongScheduleLiesApart: the document of a plan with a long schedule contains the digest that is needed to attach
// the schedule again; a short schedule stays in the document.
func TestLongScheduleLiesApart(t *testing.T) {
	t.Parallel()
	short := long(plan.MostWithin)
	if err := short.Detach(io.Discard); err != nil || short.Apart != nil || len(short.Schedule) != plan.MostWithin {
		t.Errorf("a schedule of %d tasks is apart: %+v, %v", plan.MostWithin, short.Apart, err)
	}
	p := long(plan.MostWithin + 1)
	whole := p.Schedule
	var lines bytes.Buffer
	if err := p.Detach(&lines); err != nil {
		t.Fatal(err)
	}
	want := plan.Apart{Tasks: plan.MostWithin + 1, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(lines.Bytes()))}
	if p.Schedule != nil || p.Apart == nil || *p.Apart != want || p.Whole() {
		t.Fatalf("apart is %+v, want %+v", p.Apart, want)
	}
	if document, err := json.Marshal(p); err != nil || len(document) > 1000 {
		t.Errorf("the document has %d bytes, %v", len(document), err)
	}
	if n := bytes.Count(lines.Bytes(), []byte("\n")); n != len(whole) {
		t.Errorf("%d lines, want one for each of %d tasks", n, len(whole))
	}
	if err := p.Attach(bytes.NewReader(lines.Bytes())); err != nil || !p.Whole() {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, p.Schedule); diff != "" {
		t.Errorf("the attached schedule differs:\n%.2000s", diff)
	}
}

// TestOtherScheduleIsRefused: a changed, a truncated and a malformed schedule are refused.
func TestOtherScheduleIsRefused(t *testing.T) {
	t.Parallel()
	p := long(plan.MostWithin + 1)
	var lines bytes.Buffer
	if err := p.Detach(&lines); err != nil {
		t.Fatal(err)
	}
	text := lines.String()
	for name, c := range map[string]struct{ lines, place string }{
		"changed":   {strings.Replace(text, `"start_s":0.001`, `"start_s":0.002`, 1), "schedule"},
		"not whole": {text[:strings.LastIndex(text[:len(text)-1], "\n")+1], "schedule"},
		"cut":       {text[:len(text)/2], "schedule:"},
		"none":      {"", "schedule"},
		"other":     {"{\"task\": \"a\"}\n{\"job\": 7}\n", "schedule:2"},
	} {
		err := p.Attach(strings.NewReader(c.lines))
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), c.place) || p.Whole() {
			t.Errorf("%s: %v, want an Invalid error at %s", name, err, c.place)
		}
	}
}
