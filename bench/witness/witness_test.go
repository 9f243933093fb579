package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/plan"
)

// The problems of a number are always the same, of all kinds, and can be planned.
func TestProblems(t *testing.T) {
	t.Parallel()
	var s source
	if err := s.read(context.Background(), "../../workflow/formats/wfformat/testdata/wfcommons/instances"); err != nil {
		t.Fatal(err)
	}
	if len(s.published) == 0 {
		t.Fatal("no published workflow was read")
	}
	kinds := map[string]bool{}
	for number := range 30 {
		p, kind, err := s.problem(number)
		if err != nil {
			t.Fatal(err)
		}
		kinds[kind] = true
		again, _, err := s.problem(number)
		if err != nil || len(again.Sites) != len(p.Sites) || again.Work.CPUTime() != p.Work.CPUTime() {
			t.Errorf("%s is another one the second time", name(number, kind))
		}
		for _, x := range p.Sites {
			if x.Hosts*x.Host.CPUs > x.CPUs && x.Hosts == 1 || len(p.Work.Tasks) < leastTasks {
				t.Errorf("%s: %d tasks, site %+v", name(number, kind), len(p.Work.Tasks), x)
			}
		}
	}
	if !kinds["tests"] || !kinds["heavy"] || len(kinds) < 3 {
		t.Errorf("the kinds are %v", kinds)
	}
}

// Three problems go through the player, and the summary counts their plans.
func TestExecute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	player := filepath.Join(dir, "player")
	if out, err := exec.Command("go", "build", "-o", player, "../player").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	table := filepath.Join(dir, "w.csv")
	var out, complaint bytes.Buffer
	code := execute(context.Background(), []string{"-player", player, "-first", "8", "-problems", "1", "-exact",
		"-csv", table}, &out, &complaint)
	if code > 1 || !strings.Contains(out.String(), "plans, executed: 0 leave a task undone, 0 "+
		"miss their deadline, 0 break their budget") {
		t.Errorf("exit code %d: %s%s", code, out.String(), complaint.String())
	}
}

func TestSolves(t *testing.T) {
	t.Parallel()
	rivals := []rival{{Site: "near", Pilots: 2, CPUs: 4, Makespan: 100, Cost: 10}, {Site: "far", Pilots: 1, CPUs: 1,
		Makespan: 400, Cost: 5}}
	for _, tt := range []struct {
		goal plan.Goal
		want string
	}{
		{plan.Goal{}, "near"},
		{plan.Goal{Deadline: 99}, ""},
		{plan.Goal{Deadline: 400, Bounds: plan.Bounds{MaxCPUs: 4}}, "far"},
	} {
		got := solves(tt.goal, rivals, nil)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%+v is reached by %q, want %q", tt.goal, got, tt.want)
		}
	}
	if got := solves(plan.Goal{}, nil, []solution{{100, 10, 8}}); !strings.Contains(got, "another plan") {
		t.Errorf("got %q", got)
	}
}
