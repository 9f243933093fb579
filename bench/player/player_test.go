package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hpc is a site where a cpu costs a cent a second, and workers take 10 s to come.
func hpc() site {
	return site{Site: "hpc", Overhead: 10 * second, Margin: 10 * second,
		Price: 36 * micro, Unit: "USD", Per: "cpu-hour"}
}

// asked returns a request for one host that waits for 5 s.
func asked(cpus int, submit, walltime seconds) request {
	return request{Site: "hpc", Hosts: 1, resources: resources{CPUs: cpus}, Walltime: walltime * second,
		Submit: submit * second, Start: (submit + 5) * second, Ready: (submit + 15) * second}
}

// tasksOf returns tasks of one cpu with the given estimates, each the child of the one before if chained.
func tasksOf(chained bool, estimates ...seconds) []task {
	tasks := make([]task, len(estimates))
	for i, e := range estimates {
		tasks[i] = task{id: string(rune('a' + i)), needs: resources{CPUs: 1}, estimate: e * second}
		if chained && i > 0 {
			tasks[i].parents, tasks[i-1].children = []int{i - 1}, []int{i}
		}
	}
	return tasks
}

// gameOf returns the game of a plan at a site, with hops of 2 s, an idle time of a minute and a start margin of 0.
func gameOf(t *testing.T, s site, tasks []task, pilots ...request) *game {
	t.Helper()
	p := &plan{Pilots: pilots, Cost: amount{Unit: "USD"},
		Assumed: &assumptions{Hop: 2 * second, Leave: second, Queues: []site{s}}}
	if err := arrange(tasks); err != nil {
		t.Fatal(err)
	}
	sites, err := p.sites(nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGame(p, tasks, sites, rules{idle: 60 * second, factor: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wantMakespan(t *testing.T, x result, want seconds) {
	t.Helper()
	if x.Makespan == nil || *x.Makespan != want*second {
		t.Errorf("the makespan is %v, want %v; stranded: %v", x.Makespan, want*second, x.Stranded)
	}
}

// The pilot starts at 5 s, its worker comes at 15 s. The tasks run from 17 to 77, 79 to 109 and 111 to 121 s. The job
// ends a second later: 117 s at a cent each.
func TestChainOnOnePilot(t *testing.T) {
	t.Parallel()
	g := gameOf(t, hpc(), tasksOf(true, 60, 30, 10), asked(1, 0, 600))
	g.goal = goal{Deadline: 121 * second, Budget: &amount{1_170_000, "USD"}}
	x := g.play(luck{}).result()
	wantMakespan(t, x, 121)
	if x.Cost.Money != 1_170_000 || !x.good() {
		t.Errorf("the cost is %s, deadline kept: %t, budget kept: %t", x.Cost, *x.Deadline, *x.Budget)
	}
	g.goal = goal{Deadline: 121*second - 1, Budget: &amount{1_169_999, "USD"}}
	if x := g.play(luck{}).result(); *x.Deadline || *x.Budget || x.good() {
		t.Error("a deadline or a budget that is too small by one unit counts as kept")
	}
	g.clock = true // the pilot stays for the idle minute: until 182 s
	if x := g.play(luck{}).result(); x.Cost.Money != 1_770_000 {
		t.Errorf("by the clock the cost is %s, want 1.77", x.Cost)
	}
	g.clock, g.factor = false, 3 // the wait is 15 s
	x = g.play(luck{}).result()
	wantMakespan(t, x, 131)
	if x.Cost.Money != 1_170_000 {
		t.Errorf("with waits × 3 the cost is %s, want 1.17: a queue is free", x.Cost)
	}
}

func TestBillingRoundsUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    site
		held seconds
		want money
	}{
		{site{Price: 36 * micro, Period: 60 * second}, 117 * second, 4_800_000}, // 2 × 2 cpus, 120 s
		{site{Price: 36 * micro, Period: 60 * second}, 120 * second, 4_800_000},
		{site{Price: 36 * micro, Period: 60 * second, Minimum: 600 * second}, second, 24 * micro},
		{site{Price: 36 * micro, Period: 60 * second, Minimum: 600 * second}, 0, 0}, // it never started
		{site{Price: 36 * micro, Per: "host-hour"}, 117 * second, 2_340_000},
		{site{Price: 1}, 1800 * second, 2},
		{site{Price: 1}, 450 * second, 1}, // half a millionth is rounded up
		{site{Price: 1}, 449 * second, 0},
	} {
		if got := tt.s.charge(2, 2, tt.held); got != tt.want {
			t.Errorf("%+v held for %s: %s, want %s", tt.s, tt.held, got, tt.want)
		}
	}
}

// Both pilots are there at 15 s. The long task gets the shorter pilot if it fits there. The pilot with the short task,
// which ends at 67 s, leaves when it has been idle for 10 s.
func TestLeastRemainingTimeThatFits(t *testing.T) {
	t.Parallel()
	for short, want := range map[seconds][2]seconds{
		// lifetime 190: the long task is on pilot 1 from 17 to 117, the short one on pilot 0 until 67
		210: {78, 118},
		// lifetime 90, too short for the long task: pilot 0 has it, and pilot 1 the short one
		110: {118, 78},
		// lifetime 102: a task of 100 s fits after the hop, to the second
		122: {78, 118},
		121: {118, 78},
	} {
		g := gameOf(t, hpc(), tasksOf(false, 50, 100), asked(1, 0, 600), asked(1, 0, short))
		g.idle = 10 * second
		x := g.play(luck{}).result()
		wantMakespan(t, x, 117)
		if got := [2]seconds{x.Pilots[0].End / second, x.Pilots[1].End / second}; got != want {
			t.Errorf("walltime %d: the pilots end at %v, want %v", short, got, want)
		}
	}
}

// Of places with equal time, a task takes that with the least resources left: the small one, so that the task of four
// cpus, which has a lower rank, runs at once.
func TestLeastLeftover(t *testing.T) {
	t.Parallel()
	tasks := tasksOf(false, 100, 50)
	tasks[1].needs.CPUs = 4
	g := gameOf(t, hpc(), tasks, asked(4, 0, 600), asked(1, 0, 600))
	wantMakespan(t, g.play(luck{}).result(), 117)
}

// The workers leave at 145 s. The tasks run until 77 and 139 s; the third one would end at 201 s.
func TestShortPilotStrandsItsLastTask(t *testing.T) {
	t.Parallel()
	tasks := tasksOf(true, 60, 60, 60, 1)
	x := gameOf(t, hpc(), tasks, asked(1, 0, 150)).play(luck{}).result()
	want := []stranded{{"c", byPilots, ""}, {"d", byParent, "c"}}
	if x.Finished != 2 || x.Makespan != nil || !slices.Equal(x.Stranded, want) || x.good() {
		t.Errorf("%d finished, stranded %v, want %v", x.Finished, x.Stranded, want)
	}
	if x.Pilots[0].End != 146*second { // it waits for nothing in vain: its time ends before its idle minute
		t.Errorf("the pilot ends at %s", x.Pilots[0].End)
	}
	tasks = tasksOf(false, 200, 10)
	tasks[1].needs.CPUs = 2
	x = gameOf(t, hpc(), tasks, asked(1, 0, 150)).play(luck{}).result()
	want = []stranded{{"a", byTime, "it takes 3m20s; the longest has 2m8s"}, {"b", bySize, "2 cpus, 0 MiB, 0 gpus"}}
	if !slices.Equal(x.Stranded, want) {
		t.Errorf("stranded %v, want %v", x.Stranded, want)
	}
}

// A task that takes longer than its estimate is cut off at the end of its worker's time, and begins again on the pilot
// that follows, which is submitted 75 s after the start of the first.
func TestFollowerTakesOver(t *testing.T) {
	t.Parallel()
	next := asked(1, 80, 600)
	next.Follows = new(int)
	g := gameOf(t, hpc(), tasksOf(true, 60, 10), asked(1, 0, 100), next)
	late := luck{errors: []float64{2, 1}}
	x := g.play(late).result()
	wantMakespan(t, x, 97+120+12) // cut off at 95 s, when the follower's worker is there
	if x.Killed != 1 || x.Pilots[1].Submit != 80*second {
		t.Errorf("%d tasks cut off, the follower is submitted at %s", x.Killed, x.Pilots[1].Submit)
	}
	g.factor = 2 // the first starts at 10 s, the follower is submitted at 85 and there at 105 s
	x = g.play(late).result()
	wantMakespan(t, x, 107+120+12)
	if x.Pilots[1].Submit != 85*second {
		t.Errorf("after a wait of 10 s the follower is submitted at %s", x.Pilots[1].Submit)
	}
}

// lateGame returns a chain a, b, c in which c needs the second pilot, submitted at 104 s: a runs from 17 to 67 and b
// from 69 to 119 s, when the second worker is there.
func lateGame(t *testing.T) *game {
	t.Helper()
	tasks := tasksOf(true, 50, 50, 50)
	tasks[2].needs.CPUs = 2
	g := gameOf(t, hpc(), tasks, asked(1, 0, 600), asked(2, 104, 600))
	g.first[1], g.lead[1] = []int{2}, 15*second // by its plan, c is ready when its worker is there
	return g
}

func TestLaterPilotWaitsForItsTasks(t *testing.T) {
	t.Parallel()
	g := lateGame(t)
	x := g.play(luck{}).result()
	wantMakespan(t, x, 171)
	if x.Pilots[1].Submit != 104*second {
		t.Errorf("by the plan's times it is submitted at %s", x.Pilots[1].Submit)
	}
	// a takes until 117, so that b is expected to end at 169: 15 s before, the pilot is submitted
	late := luck{errors: []float64{2, 1, 1}}
	x = g.play(late).result()
	wantMakespan(t, x, 221)
	if x.Pilots[1].Submit != 154*second {
		t.Errorf("when the run is late it is submitted at %s", x.Pilots[1].Submit)
	}
	// by the clock it is there at 119 s, and stays although it is idle for 50 s
	g.clock, g.idle = true, 10*second
	x = g.play(late).result()
	wantMakespan(t, x, 221)
	if x.Pilots[1].Submit != 104*second || x.Pilots[1].End != 232*second {
		t.Errorf("by the clock it is submitted at %s and ends at %s", x.Pilots[1].Submit, x.Pilots[1].End)
	}
	g.first[1] = nil // without a schedule it leaves 10 s after it came
	if x = g.play(late).result(); x.Finished != 2 || x.Pilots[1].End != 130*second {
		t.Errorf("without first tasks %d tasks finish and it ends at %s", x.Finished, x.Pilots[1].End)
	}
}

// The first pilot leaves at 95 s, too early for b. The second one is for c, which waits for b: as nothing else can
// happen, it is submitted for b, when it is due.
func TestForcedSubmission(t *testing.T) {
	t.Parallel()
	g := lateGame(t)
	g.pilots[0].Walltime = 100 * second
	x := g.play(luck{}).result()
	wantMakespan(t, x, 119+2+50+2+50)
	if x.Forced != 1 || x.Pilots[1].Submit != 104*second {
		t.Errorf("%d submissions forced, the second pilot is submitted at %s", x.Forced, x.Pilots[1].Submit)
	}
	g.clock = true
	if x := g.play(luck{}).result(); x.Forced != 0 || x.Makespan == nil {
		t.Errorf("by the clock %d submissions are forced, stranded: %v", x.Forced, x.Stranded)
	}
}

// The slower of the two is withdrawn when the other is there, and costs nothing if it has not started.
func TestHedge(t *testing.T) {
	t.Parallel()
	hedge := asked(1, 0, 600)
	hedge.Hedges, hedge.Start = new(int), 50*second
	x := gameOf(t, hpc(), tasksOf(false, 100), asked(1, 0, 600), hedge).play(luck{}).result()
	wantMakespan(t, x, 117)
	if x.Pilots[1].Why == "" || x.Cost.Money != 1_130_000 {
		t.Errorf("the hedge: %+v, the cost: %s", x.Pilots[1], x.Cost)
	}
	hedge.Start = 10 * second // it starts before the other's workers come, and is let go at 15 s: 6 s with its leaving
	x = gameOf(t, hpc(), tasksOf(false, 100), asked(1, 0, 600), hedge).play(luck{}).result()
	if x.Pilots[1].End != 16*second || x.Cost.Money != 1_190_000 {
		t.Errorf("the hedge that started: %+v, the cost: %s", x.Pilots[1], x.Cost)
	}
}

// Limits on what is held at once, maintenance, and limits that make a site refuse a pilot.
func TestSiteLimits(t *testing.T) {
	t.Parallel()
	two := []request{asked(1, 0, 600), asked(1, 0, 600)}
	for name, tt := range map[string]struct {
		limit func(s *site)
		want  seconds // makespan of two tasks of 100 s on two pilots; 0: none finishes
	}{
		"none":      {func(*site) {}, 117},
		"cpus":      {func(s *site) { s.CPUs = 1 }, 219}, // both on the first
		"pilots":    {func(s *site) { s.Pilots = 1 }, 219},
		"closed":    {func(s *site) { s.Closed = []period{{600 * second, 900 * second}} }, 900 + 112},
		"too late":  {func(s *site) { s.Closed = []period{{605 * second, 900 * second}} }, 117},
		"walltime":  {func(s *site) { s.Walltime = 599 * second }, 0},
		"host":      {func(s *site) { s.HostCPUs = 1 }, 117},
		"two nodes": {func(s *site) { s.Nodes = []nodes{{2, resources{CPUs: 1}, false}} }, 117},
		"wait":      {func(s *site) { w := 100 * second; s.Wait = &w }, 212},
	} {
		t.Run(name, func(t *testing.T) {
			s := hpc()
			tt.limit(&s)
			x := gameOf(t, s, tasksOf(false, 100, 100), two...).play(luck{}).result()
			if tt.want > 0 {
				wantMakespan(t, x, tt.want)
			} else if len(x.Stranded) != 2 || x.Stranded[0].Reason != byStart {
				t.Errorf("stranded %v", x.Stranded)
			}
		})
	}
}

// Two hosts of three cpus do not fit on one node of four: a pilot with both is refused, and of two pilots one waits
// until the other has left.
func TestTwoHostsDoNotFitOneNode(t *testing.T) {
	t.Parallel()
	s := hpc()
	s.Nodes = []nodes{{Count: 1, resources: resources{CPUs: 4}}}
	both := asked(3, 0, 600)
	both.Hosts = 2
	x := gameOf(t, s, tasksOf(false, 100), both).play(luck{}).result()
	if x.Violations != 1 || len(x.Stranded) != 1 || !strings.Contains(x.Pilots[0].Why, "do not fit") {
		t.Errorf("%d violations, stranded %v, %+v", x.Violations, x.Stranded, x.Pilots)
	}
	tasks := tasksOf(false, 100, 100)
	tasks[0].needs.CPUs, tasks[1].needs.CPUs = 3, 3
	g := gameOf(t, s, tasks, asked(3, 0, 200), asked(3, 0, 600))
	x = g.play(luck{}).result()
	// The first pilot's workers leave at 195 s, or when they have been idle from 117 to 177 s. It ends a second later,
	// and the other one's worker comes 10 s after that.
	wantMakespan(t, x, 178+12+100)
	if x.Violations != 1 || x.good() {
		t.Errorf("%d violations", x.Violations)
	}
	s.Nodes[0].Count = 2
	x = gameOf(t, s, tasks, asked(3, 0, 200), asked(3, 0, 600)).play(luck{}).result()
	wantMakespan(t, x, 117)
	if x.Violations != 0 {
		t.Errorf("on two nodes: %d violations", x.Violations)
	}
}

func TestPacking(t *testing.T) {
	t.Parallel()
	cpus := func(all ...int) (hosts []resources) {
		for _, n := range all {
			hosts = append(hosts, resources{CPUs: n, MemoryMiB: 1})
		}
		return hosts
	}
	ten := []nodes{{Count: 2, resources: resources{CPUs: 10}}}
	for name, tt := range map[string]struct {
		types []nodes
		hosts []resources
		want  verdict
	}{
		"as they come": {ten, cpus(5, 5, 5, 5), packed},
		// 4 3 | 7 leaves no room for 6 until all are packed again
		"again":        {ten, cpus(4, 3, 7, 6), packed},
		"too much":     {ten, cpus(10, 10, 1), impossible},
		"three halves": {ten, cpus(6, 6, 6), impossible},
		// 5 3 2 | 4 3 3 fits, but first fit decreasing puts 5 4 | 3 3 3, and has no place for 2
		"undecided": {ten, cpus(5, 4, 3, 3, 3, 2), undecided},
		"memory": {[]nodes{{Count: 2, resources: resources{CPUs: 64, MemoryMiB: 100}}},
			[]resources{{1, 60, 0}, {1, 60, 0}, {1, 60, 0}}, impossible},
		"whole nodes": {[]nodes{{2, resources{CPUs: 10}, true}}, cpus(1, 1, 1), impossible},
		"gpu nodes": {[]nodes{{2, resources{8, 0, 4}, false}, {9, resources{CPUs: 8}, false}},
			[]resources{{1, 0, 4}, {1, 0, 4}, {1, 0, 1}}, impossible},
		"largest fits":  {[]nodes{{1, resources{CPUs: 4}, false}, {1, resources{CPUs: 8}, false}}, cpus(4, 8), packed},
		"small first":   {[]nodes{{1, resources{CPUs: 8}, false}, {1, resources{CPUs: 4}, false}}, cpus(4, 8), packed},
		"nothing fits":  {ten, cpus(11), impossible},
		"without limit": {ten, []resources{{1, 1 << 30, 0}}, packed},
	} {
		r := newRack(tt.types)
		got := packed
		for i, h := range tt.hosts {
			got = max(got, r.hold(i, 1, h))
		}
		if got != tt.want {
			t.Errorf("%s: verdict %d, want %d", name, got, tt.want)
		}
		for i := range tt.hosts {
			r.release(i)
		}
		if empty := newRack(tt.types); !slices.Equal(r.all, empty.all) || len(r.held) != 0 {
			t.Errorf("%s: after all have left: %+v", name, r.all)
		}
	}
}

// A faster restart on the same worker, transfers and a limit of one start in 4 s.
func TestPaceOfTheCluster(t *testing.T) {
	t.Parallel()
	g := gameOf(t, hpc(), tasksOf(false, 30, 20), asked(1, 0, 600))
	g.reuse = second / 2 // 17 to 47, 47.5 to 67.5 s
	if x := g.play(luck{}).result(); *x.Makespan != 67*second+second/2 {
		t.Errorf("with reuse the makespan is %s", x.Makespan)
	}
	g.reuse, g.transfer["hpc"] = 0, transfer{Latency: second, Bandwidth: 100}
	g.tasks[0].bytes = 400 // 17 to 52, 54 to 75 s
	wantMakespan(t, g.play(luck{}).result(), 75)
	g = gameOf(t, hpc(), tasksOf(false, 30, 30, 30), asked(3, 0, 600))
	g.gap = 4 * second // starts at 17, 21 and 25 s
	wantMakespan(t, g.play(luck{}).result(), 55)
	slow := hpc()
	slow.Speed = 0.5
	wantMakespan(t, gameOf(t, slow, tasksOf(false, 30), asked(1, 0, 600)).play(luck{}).result(), 77)
}

// A present pilot is used first and costs the plan nothing. It leaves after its own time without a task.
func TestPresentPilot(t *testing.T) {
	t.Parallel()
	g := gameOf(t, hpc(), tasksOf(false, 30), asked(1, 0, 600))
	g.present = []present{{Site: "hpc", Hosts: 1, resources: resources{CPUs: 1}, Ready: 3 * second, End: 100 * second}}
	x := g.play(luck{}).result()
	wantMakespan(t, x, 35)
	if len(x.Pilots) != 1 || x.Cost.Money != 310_000 { // from 5 to 36 s
		t.Errorf("%+v", x)
	}
}

// A task that already runs on a present pilot stays on its host until its end by the schedule, even if that is after
// the pilot's end; another task finds no place there.
func TestPresentPilotRunsTasks(t *testing.T) {
	t.Parallel()
	g := gameOf(t, hpc(), tasksOf(false, 40, 30), asked(1, 0, 600))
	g.present = []present{{Site: "hpc", Hosts: 1, resources: resources{CPUs: 2}, End: 20 * second,
		Running: []begun{{"a", 0}}}}
	if err := g.resume([]placement{{Task: "a", Pilot: 1, End: 40 * second}}); err != nil {
		t.Fatal(err)
	}
	r := g.play(luck{})
	wantMakespan(t, r.result(), 47) // b runs from 17 s on
	if end := r.tasks[0].end; end != 40*second {
		t.Errorf("the task ends at %v", end)
	}
	if err := g.resume([]placement{{Task: "a", Pilot: 0, End: 40 * second}}); err == nil {
		t.Error("a schedule that moves the task is accepted")
	}
}

func TestWilson(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{{9, 10, 0.5958, 0.9821}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {50, 100, 0.4038, 0.5962}} {
		s := wilson(tt.k, tt.n)
		if math.Abs(s.Low-tt.low) > 1e-4 || math.Abs(s.High-tt.high) > 1e-4 {
			t.Errorf("%d of %d: %+v", tt.k, tt.n, s)
		}
	}
}

// Draws depend on seed and number alone, factors have mean 1, and the shares agree with the law: a task of 100 s with a
// deadline of 117 s is in time if its factor is at most 1.
func TestDraws(t *testing.T) {
	t.Parallel()
	g := gameOf(t, hpc(), tasksOf(false, 100), asked(1, 0, 600))
	g.goal.Deadline = 117 * second
	l := lottery{number: 4000, error: 0.4, seed: 7}
	d := g.lots(l)
	// Φ(s/2) = Φ(0.2) = 0.5793
	if d.Deadline.Low > 0.5793 || d.Deadline.High < 0.5793 || d.Finished.Share != 1 || d.Budget != nil {
		t.Errorf("%+v, within the deadline %+v", d, d.Deadline)
	}
	// the quantiles of the factor are exp(0.4·z − 0.08): 0.923 and 1.541
	p50, p90 := d.MakespanP50.float()-17, d.MakespanP90.float()-17
	if math.Abs(p50-92.3) > 2 || math.Abs(p90-154.1) > 5 {
		t.Errorf("p50 %.1f, p90 %.1f", p50, p90)
	}
	sum := 0.
	for _, f := range l.draw(3, 100_000, 0).errors {
		sum += f
	}
	if math.Abs(sum/1e5-1) > 0.01 {
		t.Errorf("the mean factor is %f", sum/1e5)
	}
	if a, b := l.draw(5, 3, 0), l.draw(5, 3, 0); !slices.Equal(a.errors, b.errors) ||
		slices.Equal(a.errors, l.draw(6, 3, 0).errors) {
		t.Error("draws do not depend on their number alone")
	}
}

func TestDrawnWaits(t *testing.T) {
	t.Parallel()
	s := &site{Waits: []shapeWaits{
		{4, 0, second, []seconds{0, 10 * second, 100 * second}}, {8, 60 * second, second, []seconds{7 * second}},
		{8, 90 * second, second, []seconds{9 * second}},
	}}
	for _, tt := range []struct {
		cpus     int
		walltime seconds
		share    float64
		want     seconds
	}{
		{1, 1, 0, 0}, {4, 1, 0.25, 5 * second}, {4, 1, 0.75, 55 * second}, {4, 1, 1, 100 * second},
		{5, 60 * second, 0.5, 7 * second}, {9, 0, 0, 7 * second}, {5, 61 * second, 0, 9 * second}, {9, 99 * second, 0, 9 * second},
	} {
		if got := s.quantile(tt.cpus, tt.walltime, tt.share, never); got != tt.want {
			t.Errorf("%d cpus, share %g: %s, want %s", tt.cpus, tt.share, got, tt.want)
		}
	}
}

// files writes texts to files, and returns their names.
func files(t *testing.T, texts ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		name := filepath.Join(dir, string(rune('0'+i)))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// A plan that Corral made comes true to the millisecond. Its document is that of the REST API's examples.
func TestPlanOfCorral(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := execute([]string{"-o", "json", "testdata/plan.json", "testdata/two.json"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	var rep report
	if err := json.Unmarshal(stdout.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Play.Finished != 2 || rep.Play.Makespan == nil || *rep.Play.Makespan != rep.Planned.Makespan ||
		rep.Play.Cost != rep.Planned.Cost || rep.Differ != 0 {
		t.Errorf("%s", &stdout)
	}
	want := []string{"site local: its nodes are not known, so that only its limits are checked",
		"site local: the plan has no margin before the end of a walltime"}
	if !slices.Equal(rep.NotJudged, want) {
		t.Errorf("not judged: %q", rep.NotJudged)
	}
}

// The table, a description of the site that changes some of its fields, and draws.
func TestTable(t *testing.T) {
	t.Parallel()
	sites := files(t, `{"sites": [{"site": "local", "nodes": [{"count": 1, "cpus": 1}], "wait_s": 600, "price": 2,
		"billed_period_s": 60, "margin_s": 30}, {"site": "other", "price": 1}]}`)
	var stdout, stderr bytes.Buffer
	args := []string{"-sites", sites[0], "-error", "0.2", "-draws", "10", "testdata/plan.json", "testdata/two.json"}
	if code := execute(args, &stdout, &stderr); code != broken {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	// 691.004 s are after the deadline of 600 s; 91.004 s are billed as 120 s at twice the price
	for _, want := range []string{"finished            2 of 2 tasks\n", "makespan            11m31s (planned 1m31s)\n",
		"cost                0.066667ch (planned 0.025279ch)\n", "deadline            broken\n",
		"budget              none\n",
		"draws               10, error 0.2, seed 1\n", "  within deadline   0.000 (0.000 to 0.278)\n"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, &stdout)
		}
	}
}

func TestReadingWorkflows(t *testing.T) {
	t.Parallel()
	tasks, err := readWorkflow([]byte(`{"schemaVersion": "1.5", "workflow": {"specification": {
		"tasks": [{"id": "a_", "children": ["b"], "outputFiles": ["f"],
				"x-corral": {"id": "a", "memory_mib": 7, "gpus": 1}},
			{"id": "b", "parents": ["a_"], "inputFiles": ["f", "g"], "x-corral": {"estimate_s": 2.0004}}],
		"files": [{"id": "f", "sizeInBytes": 5}, {"id": "g", "sizeInBytes": 6}]},
		"execution": {"tasks": [{"id": "b", "runtimeInSeconds": 9, "coreCount": 1.5, "memoryInBytes": 1048577},
			{"id": "a_", "runtimeInSeconds": 3}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := tasks[0], tasks[1]
	if a.id != "a" || a.needs != (resources{1, 7, 1}) || a.estimate != 3*second || a.rank != 5*second || a.bytes != 5 {
		t.Errorf("a: %+v", a)
	}
	if b.needs != (resources{2, 2, 0}) || b.estimate != 2*second || b.rank != 2*second || b.bytes != 11 ||
		!slices.Equal(b.parents, []int{0}) || !slices.Equal(a.children, []int{1}) {
		t.Errorf("b: %+v", b)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	workflow := func(tasks string) string {
		return `{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [` + tasks + `]}}}`
	}
	const plan, two = "testdata/plan.json", "testdata/two.json"
	bad := files(t, `{"feasible": false}`, `{"feasible": true}`, `{"feasible": true, "assumed": {"run_id": 3}}`, `{`,
		`{"schemaVersion": "1.4"}`, workflow(`{"id": "a", "parents": ["b"]}`), workflow(`{"id": "a"}, {"id": "a"}`),
		workflow(`{"id": "a", "parents": ["b"]}, {"id": "b", "parents": ["a"]}`),
		`{"sites": [{"site": "local", "prise": 3}]}`, `{"sites": [{"site": "local", "unit": "USD"}]}`,
		`{"sites": [{"site": "local", "nodes": [{"cpus": 3}]}]}`)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{plan}, "want two files"},
		{[]string{"-what", plan, two}, "flag provided but not defined"},
		{[]string{"-o", "xml", plan, two}, "want table or json"},
		{[]string{"-estimates", "guess", plan, two}, "want workflow or plan"},
		{[]string{"-waits", "NaN", plan, two}, "must not be negative"},
		{[]string{"-draws", "-1", plan, two}, "must not be negative"},
		{[]string{"missing", two}, "no such file"},
		{[]string{bad[0], two}, "the plan is infeasible"},
		{[]string{bad[1], two}, "does not contain its assumptions"},
		{[]string{bad[2], two}, "which tasks are done"},
		{[]string{bad[3], two}, "unexpected end of JSON"},
		{[]string{plan, bad[4]}, "only WfFormat 1.5"},
		{[]string{plan, bad[5]}, "does not exist"},
		{[]string{plan, bad[6]}, "given twice"},
		{[]string{plan, bad[7]}, "cycle"},
		{[]string{"-sites", bad[8], plan, two}, `unknown field "prise"`},
		{[]string{"-sites", bad[9], plan, two}, "is paid in USD"},
		{[]string{"-sites", bad[10], plan, two}, "needs a count"},
	} {
		var stdout, stderr bytes.Buffer
		if code := execute(tt.args, &stdout, &stderr); code != misuse || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: exit code %d, %s", tt.args, code, &stderr)
		}
	}
}
