package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const line = "31 (a (b) c) S 7 31 31 0 -1 4194304 5000 90 0 0 150 50 20 5 20 0 9 0 4711 1 2 3"
	got, err := parseStat(line)
	want := stat{state: "S", parent: 7, started: 4711, usage: usage{2 * time.Second, 250 * time.Millisecond}}
	if err != nil || got != want {
		t.Errorf("parseStat = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "31 (x) S 7", strings.Replace(line, "150", "x", 1)} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q) found something", bad)
		}
	}
	p, parent, err := processOf(os.Getpid())
	if err != nil || parent != os.Getppid() || !p.alive() {
		t.Errorf("this process: %+v, parent %d, %v", p, parent, err)
	}
	if p.started--; p.alive() {
		t.Error("a process that has this one's number is taken for it")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("31 (a (b) c) S 7 31 31 0 -1 4194304 5000 90 0 0 150 50 20 5 20 0 9 0 4711 1 2 3")
	f.Add(") ) )")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := parseStat(line); err == nil && s.state == "" {
			t.Errorf("parseStat(%q) = %+v", line, s)
		}
	})
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	got, err := parseStatus("Name:\tcorrald\nVmHWM:\t   4096 kB\nVmRSS:\t   1024 kB\n")
	if want := (memory{now: 1024, peak: 4096}); err != nil || got != want {
		t.Errorf("parseStatus = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "VmRSS:\tmuch kB\n"} {
		if _, err := parseStatus(bad); err == nil {
			t.Errorf("parseStatus(%q) found something", bad)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   spread
		want []string
	}{
		{spread{3}, []string{"3.0", "3.0–3.0"}},
		{spread{9, 1, 2}, []string{"2.0", "1.0–9.0"}},
		{spread{4, 1, 2, 9}, []string{"3.0", "1.0–9.0"}},
	} {
		if diff := cmp.Diff(c.want, c.in.row("%.1f")); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", c.in, diff)
		}
	}
}

// Ratios are taken within a round, not of medians: here the machine became half as fast after the first round.
func TestRatiosArePairwise(t *testing.T) {
	t.Parallel()
	at := func(tasks int) sample { return sample{tasks: tasks, span: time.Second} }
	got := ratios([]sample{at(900), at(400)}, []sample{at(1000), at(500)})
	if diff := cmp.Diff(spread{0.9, 0.8}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if ms := perTask([]sample{at(500)}); ms[0] != 2 {
		t.Errorf("perTask = %v, want 2 ms", ms)
	}
	s := at(1000)
	s.cost[partTasks], s.cost[partCorrald] = 3*time.Millisecond, time.Millisecond
	if got := costs([]sample{s}, cost.sum); got[0] != 4 || s.each(s.cost.sum()) != 4*time.Microsecond {
		t.Errorf("costs = %v, want 4 µs", got)
	}
	bare := at(1000)
	bare.cost[partRunner] = 3 * time.Millisecond
	if got := thrifts([]sample{s}, []sample{bare}); got[0] != 0.75 {
		t.Errorf("thrifts = %v, want 3 µs ÷ 4 µs", got)
	}
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make   func(int) ([]byte, error)
		levels []int
	}{
		"independent": {independent, []int{4}},
		"chain":       {chain, []int{1, 1, 1, 1}},
	} {
		document, err := c.make(4)
		if err != nil {
			t.Fatal(err)
		}
		w, _, err := wfformat.Read(t.Context(), bytes.NewReader(document), name, workflow.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := w.Runnable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.levels, w.Graph.LevelSizes()); diff != "" {
			t.Errorf("%s: tasks by level (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(noop, w.Tasks[3].Argv); diff != "" {
			t.Errorf("%s: command (-want +got)\n%s", name, diff)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	const mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/deep xfs rw 0 0\nshort\n"
	for dir, want := range map[string]string{"/home/x": "ext4", "/tmp": "tmpfs", "/tmp/x": "tmpfs", "/tmp/deep/x": "xfs", "/tmpx": "ext4"} {
		if got := fileSystemOf(mounts, dir); got != want {
			t.Errorf("fileSystemOf(%s) = %s, want %s", dir, got, want)
		}
	}
	if got := modelOf("processor\t: 0\nmodel name\t: Abacus 9\n"); got != "Abacus 9" {
		t.Errorf("modelOf = %q", got)
	}
	m := thisMachine(t.TempDir())
	if m.fileSystem == "unknown" || m.load == "" || strings.Contains(m.String(), "Linux ,") {
		t.Errorf("this machine: %s", m)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	table(&b, [][]string{{"a", "b"}, {"µs", "1"}})
	want := "| a  | b |\n| -- | - |\n| µs | 1 |\n"
	if b.String() != want {
		t.Errorf("table = %q, want %q", b.String(), want)
	}
}
