package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][4]string{
		"plan 1: 32.5s predicted, 31.8s taken (-2 %); 0.036156ch predicted, 0.035272ch billed": {"32.5s", "31.8s",
			"0.036156", "0.035272"},
		"plan 12: 1m2s predicted, 1m40s taken (+61 %)": {"1m2s", "1m40s"},
	} {
		found := verdict.FindStringSubmatch(text)
		if len(found) != 5 || [4]string(found[1:]) != want {
			t.Errorf("%q: %q", text, found)
		}
	}
}

// Without errors the runtimes are as estimated, and the file is valid JSON; with errors they differ by at most these.
func TestDrawn(t *testing.T) {
	t.Parallel()
	exact, off := drawn(3, 0), drawn(3, 0.3)
	if len(exact.tasks) != len(off.tasks) {
		t.Fatal("errors change the number of tasks")
	}
	for i, a := range exact.tasks {
		b := off.tasks[i]
		if a.took != a.estimate || b.took < 0.699*b.estimate || b.took > 1.301*b.estimate {
			t.Errorf("task %d: %+v, %+v", i, a, b)
		}
	}
	file := filepath.Join(t.TempDir(), "w.json")
	if err := exact.write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !json.Valid(text) {
		t.Errorf("%v: %.100s", err, text)
	}
}

// The control runs each task once, after its parents.
func TestControl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := new(flow)
	for i := range 4 {
		x := task{estimate: 0.01, command: []string{"/bin/sh", "-c", "echo x >>" + filepath.Join(dir, string(rune('a'+i)))}}
		if i > 0 { // fails if the parent has not run
			x.parents = []int{i - 1}
			x.command[2] = "test -e " + filepath.Join(dir, string(rune('a'+i-1))) + " && " + x.command[2]
		}
		w.tasks = append(w.tasks, x)
	}
	q := plan.Pilot{}
	q.Hosts, q.CPUs = 1, 2
	if took := w.finish().control(context.Background(), []plan.Pilot{q}); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	for i := range w.tasks {
		if text, err := os.ReadFile(filepath.Join(dir, string(rune('a'+i)))); err != nil || string(text) != "x\n" {
			t.Errorf("task %d: %q, %v", i, text, err)
		}
	}
}
