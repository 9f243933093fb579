package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measured returns samples of a thousand tasks that took the given milliseconds, with a tenth of that for each part.
func measured(ms ...int) (all []sample) {
	for _, n := range ms {
		s := sample{tasks: 1000, span: time.Duration(n) * time.Millisecond}
		s.cost[partTasks], s.cost[partRunner] = s.span/10, s.span/10
		all = append(all, s)
	}
	return all
}

func TestReportOfTasks(t *testing.T) {
	t.Parallel()
	r := results{
		throughput: throughput{
			tasks: 1000, clustering: "horizontal=10",
			limit: measured(500, 400, 1000), corral: measured(1000, 500, 2000), kept: measured(1000, 1000, 1000), clustered: measured(500, 500, 500),
		},
		latency: latency{limit: measured(1000), corral: measured(1500, 2500)},
		queued: queued{
			tasks: 1024, document: 2_500_000, answered: 1234567 * time.Microsecond, quiet: 2345 * time.Millisecond,
			empty: memory{now: 10 << 10, peak: 11 << 10}, full: memory{now: 12 << 10, peak: 14 << 10},
		},
	}
	want := `1000 independent no-op tasks (/bin/true), 2 wide, 3 rounds:

| tasks/s                            | median | range     |
| ---------------------------------- | ------ | --------- |
| bare loop                          | 2000   | 1000–2500 |
| corral                             | 1000   | 500–2000  |
| corral, --keep-tasks               | 1000   | 1000–1000 |
| corral, horizontal=10              | 2000   | 2000–2000 |
| **corral ÷ bare loop**             | 0.50   | 0.50–0.80 |
| --keep-tasks ÷ bare loop           | 0.50   | 0.40–1.00 |
| horizontal=10 ÷ bare loop          | 1.00   | 0.80–2.00 |
| bare loop ÷ corral, processor time | 0.50   | 0.50–0.80 |
| the same with --keep-tasks         | 0.50   | 0.40–1.00 |

Processor time, µs a task, medians:

| part                     | bare loop | corral | --keep-tasks | horizontal=10 |
| ------------------------ | --------- | ------ | ------------ | ------------- |
| tasks (fork, exec, exit) | 50        | 100    | 100          | 50            |
| bare loop / workers      | 50        | 100    | 100          | 50            |
| pilot                    | 0         | 0      | 0            | 0             |
| corrald                  | 0         | 0      | 0            | 0             |
| shells of the site       | 0         | 0      | 0            | 0             |
| all                      | 100       | 200    | 200          | 100           |

A chain of 1000 no-op tasks, each waiting for the one before it:

| ms a hop      | median | range     |
| ------------- | ------ | --------- |
| one bare loop | 1.00   | 1.00–1.00 |
| corral        | 2.00   | 1.50–2.50 |

1024 tasks queued in corrald, no worker (workflow of 2.5 MB):

| what                   | measured   |
| ---------------------- | ---------- |
| request to answer      | 1.235s     |
| request to all queued  | 2.35s      |
| resident memory before | 10 MiB     |
| resident memory then   | 12 MiB     |
| its peak               | 14 MiB     |
| growth per task        | 2048 bytes |
`
	if diff := cmp.Diff(want, r.markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportOfOverheads(t *testing.T) {
	t.Parallel()
	o := overheads{
		cluster: spread{1, 2}, cold: spread{3}, warm: spread{2, 4}, first: spread{1.5}, leave: spread{0.1},
		cleanup: spread{0.2}, job: spread{1, 3}, bare: spread{4},
	}
	want := `Overheads on a cluster of kind condor, seconds, 2 rounds:

| what                                       | median | range     | thesis    |
| ------------------------------------------ | ------ | --------- | --------- |
| setup, packages by HTTP (cold)             | 3.00   | 3.00–3.00 | 28.4–29.5 |
| setup, packages in corrald's mirror (warm) | 3.00   | 2.00–4.00 | 28.4–29.5 |
| allocation until the slot is registered    | 1.50   | 1.50–1.50 | 35.3–97.0 |
| no-op workflow on a standing glidein       | 2.00   | 1.00–3.00 | 1.6–2.2   |
| no-op job by condor_submit on the same     | 4.00   | 4.00–4.00 |           |
| **workflow ÷ condor_submit**               | 0.50   |           |           |
| removal of the glidein                     | 0.10   | 0.10–0.10 |           |
| cleanup of the site                        | 0.20   | 0.20–0.20 | 15.0–15.7 |
| a new pool                                 | 1.50   | 1.00–2.00 |           |
`
	if diff := cmp.Diff(want, o.markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportOfGlideins(t *testing.T) {
	t.Parallel()
	c := crowd{
		glideins: 4, answered: 1234 * time.Millisecond, registered: 5 * time.Second, jobs: 8, done: 4 * time.Second,
		left: time.Minute, memory: map[string]int64{"pilot": 8 << 10, "condor_startd": 4 << 10, "sh": 1},
	}
	want := `4 glideins of one slot in one pool, all on this machine:

| what                               | measured  |
| ---------------------------------- | --------- |
| all requests answered              | 1.23s     |
| all slots registered               | 5s        |
| 8 no-op jobs by condor_submit      | 4s, 2.0/s |
| all removed                        | 1m0s      |
| memory of a glidein, pilot         | 2.0 MiB   |
| memory of a glidein, condor_startd | 1.0 MiB   |
| memory of a glidein, all           | 3.0 MiB   |
`
	if diff := cmp.Diff(want, c.markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The sides take turns, so that each ratio compares measurements that are close in time.
func TestTurns(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	at := func(name string, tasks int) side {
		return func() (sample, error) {
			order.WriteString(name)
			return sample{tasks: tasks, span: time.Second}, nil
		}
	}
	two := func(m [][]sample) bool { return len(m[0]) < 2 }
	got, err := turns(two, at("a", 100), at("b", 75))
	if err != nil || order.String() != "abab" || len(got) != 2 || len(got[1]) != 2 {
		t.Errorf("turns = %v, %v, in the order %q", got, err, &order)
	}
	if said := lastRound(got); said != "100 (1.00), 75 (0.75)" {
		t.Errorf("of the last round is said %q", said)
	}
	broken := errors.New("broken")
	_, err = turns(two, at("a", 1), func() (sample, error) { return sample{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("of a side that fails: %v", err)
	}
}

// The time of a failed call does not count.
func TestClocked(t *testing.T) {
	t.Parallel()
	var s spread
	broken := errors.New("broken")
	if err := clocked(&s, func() error { return nil }); err != nil || len(s) != 1 || s[0] < 0 {
		t.Errorf("clocked %v, %v", s, err)
	}
	if err := clocked(&s, func() error { return broken }); !errors.Is(err, broken) || len(s) != 1 {
		t.Errorf("clocked %v of what failed, %v", s, err)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	p := plan{stdout: &stdout, out: filepath.Join(t.TempDir(), "report.md")}
	if err := p.publish(thisMachine(t.TempDir()), "\n\nfigures\n"); err != nil {
		t.Fatal(err)
	}
	if text := stdout.String(); !strings.HasPrefix(text, "corral ") || !strings.HasSuffix(text, "\n\nfigures\n") {
		t.Errorf("printed %q", text)
	}
	if kept := read(p.out); kept != stdout.String() {
		t.Errorf("kept %q, printed %q", kept, &stdout)
	}
}

// The memory of this test process is summed under its program's name.
func TestMemoryBelow(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if sums := memoryBelow(filepath.Dir(self)); sums[filepath.Base(self)] < 1000 {
		t.Errorf("%v, want some MiB of %s", sums, filepath.Base(self))
	}
	if sums := memoryBelow(t.TempDir()); len(sums) > 0 {
		t.Errorf("%v below a new folder", sums)
	}
}

func TestFoldersForJobsAreOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stand")
	jobs := filepath.Join(dir, "jobs")
	if err := openFolders(dir, jobs); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{dir: 0o755, jobs: 0o777 | os.ModeSticky} {
		info, err := os.Stat(name)
		if err != nil || info.Mode()&^os.ModeDir != want {
			t.Errorf("%s: %v (%v), want mode %v", name, info.Mode(), err, want)
		}
	}
	description := strings.Split(string(noopJobs("x.log", 64, 3)), "\n")
	for _, want := range []string{"executable = /bin/true", "request_memory = 64", "log = x.log", "queue 3"} {
		if !slices.Contains(description, want) {
			t.Errorf("jobs are described without %q: %q", want, description)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for verb, rounds := range map[string]int{"": 3, "limit": 3, "overheads": 10, "glideins": 3} {
		p, err := parse(verb, []string{"-hops", "7"}, nil, nil)
		if err != nil || p.rounds != rounds || p.hops != 7 || p.tasks != defaultTasks || verbs[verb] == nil {
			t.Errorf("%q: %+v, %v, want %d rounds", verb, p, err, rounds)
		}
	}
}
