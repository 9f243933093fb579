package scaling

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

var now = time.Unix(1e9, 0)

// scaled returns a scale of 0 to 8 cpus at two sites, with workers of 2 cpus.
func scaled() corral.Scale {
	return corral.Scale{Sites: []string{"near", "far"}, Max: 8, CPUs: 2, Walltime: corral.Seconds(time.Hour),
		Idle: corral.Seconds(time.Minute)}
}

func waiting(jobs int) []matching.Class {
	return []matching.Class{{Needs: matching.Resources{Resources: corral.Resources{CPUs: 1}, Time: time.Minute}, Jobs: jobs}}
}

// view returns a view with the given number of waiting jobs and two open sites.
func view(jobs int) View {
	return View{Waiting: waiting(jobs), Longest: 50 * time.Minute,
		Sites: []Supplier{{Name: "near", Pilots: 3}, {Name: "far", Pilots: 100}}}
}

func room(cpus int) Room {
	return Room{corral.Resources{CPUs: cpus, MemoryMiB: 1000, DiskMiB: 1000}, time.Hour}
}

func TestWorkersAreRequestedForWaitingJobs(t *testing.T) {
	t.Parallel()
	d := Decide(now, scaled(), view(5))
	if len(d.Asks) != 3 || d.Asks[0].Site != "near" || d.Asks[0].Needs.CPUs != 2 || d.Asks[2].Needs.CPUs != 1 {
		t.Errorf("%+v", d)
	}
	if d.Report != "5 jobs wait: 0 fit workers that are there, 0 workers that are to come; 3 workers are asked for" {
		t.Error(d.Report)
	}
}

// Tasks that wait for their parents are in no queue, so no job is waiting and no worker is requested.
func TestNoWorkerForATaskThatWaitsForItsParents(t *testing.T) {
	t.Parallel()
	if d := Decide(now, scaled(), view(0)); len(d.Asks) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestNoWorkerForJobsThatFitARunningOne(t *testing.T) {
	t.Parallel()
	v := view(3)
	v.Room, v.Held = []Room{room(2), room(1)}, 4
	if d := Decide(now, scaled(), v); len(d.Asks) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestNoWorkerForJobsThatFitAFutureOne(t *testing.T) {
	t.Parallel()
	v := view(3)
	v.Coming, v.Held = []Coming{{Room: room(2)}, {Room: room(2)}}, 4
	if d := Decide(now, scaled(), v); len(d.Asks) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestNeverOverTheMaximum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
		s, v := scaled(), view(n("jobs", 100))
		s.CPUs = 1 + n("cpus", 4)
		s.Max = s.CPUs + n("maximum", 40)
		s.Min = n("minimum", s.Max)
		v.Held = n("held", 60)
		for range n("there", 3) {
			v.Room = append(v.Room, room(n("free", 3)))
		}
		d := Decide(now, s, v)
		if after := v.Held + len(d.Asks)*s.CPUs; len(d.Asks) > 0 && after > s.Max {
			t.Fatalf("%d cpus of at most %d: %+v", after, s.Max, d)
		}
		if len(d.Asks) > 0 && len(d.Withdraw) > 0 && v.Held >= s.Min {
			t.Fatalf("asked for and withdrawn at once: %+v", d)
		}
	})
}

func TestAppliedLimitIsNamed(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*corral.Scale, *View){
		"the maximum of 8 cpus is reached: 8 are held": func(_ *corral.Scale, v *View) { v.Waiting = waiting(99) },
		"site near takes no more pilots by its limits": func(_ *corral.Scale, v *View) { v.Sites = []Supplier{{Name: "near"}} },
		"site near is FAILED":                          func(_ *corral.Scale, v *View) { v.Sites = []Supplier{{Name: "near", Closed: "is FAILED"}} },
		"5 jobs need 3 cpus: workers have 2 (--cpus)":  func(_ *corral.Scale, v *View) { v.Waiting[0].Needs.CPUs = 3 },
		"workers of 1h0m0s take none above 50m0s":      func(_ *corral.Scale, v *View) { v.Waiting[0].Needs.Time = time.Hour },
	} {
		s, v := scaled(), view(5)
		change(&s, &v)
		if d := Decide(now, s, v); !strings.Contains(d.Report, want) {
			t.Errorf("%q does not say %q", d.Report, want)
		}
	}
}

// However many classes are merged, no merged class is considered impossible for every host if each of its jobs fits a
// host.
func TestMergedClassesFindTheirHosts(t *testing.T) {
	t.Parallel()
	s, v := scaled(), view(0)
	v.Sites = []Supplier{{Name: "near", Pilots: 100, Hosts: []corral.Resources{
		{CPUs: 2, MemoryMiB: 1300, GPUs: 3}, {CPUs: 2, MemoryMiB: 2000, GPUs: 2}}}}
	for i := range matching.MostClasses {
		for _, needs := range []corral.Resources{{CPUs: 1, MemoryMiB: 1030 + i, GPUs: 3},
			{CPUs: 1, MemoryMiB: 1700 + i, GPUs: 2}, {CPUs: 1, MemoryMiB: 1700 + i, GPUs: 3}} {
			v.Waiting = append(v.Waiting, matching.Class{Needs: matching.Resources{Resources: needs}, Jobs: 1})
		}
	}
	d := Decide(now, s, v)
	if len(d.Asks) != 4 || !strings.Contains(d.Report, "256 jobs need 1 cpu, 1955 MiB of memory, 3 gpus") {
		t.Errorf("%d workers, want the 4 of the maximum: %s", len(d.Asks), d.Report)
	}
}

func TestMinimumIsKeptWithoutWork(t *testing.T) {
	t.Parallel()
	s := scaled()
	s.Min = 3
	d := Decide(now, s, view(0))
	if len(d.Asks) != 2 || !d.Asks[0].Keep {
		t.Errorf("%+v", d)
	}
	v := view(0)
	v.Held = 4
	if d := Decide(now, s, v); len(d.Asks) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestWorkersHaveTheMemoryAndGPUsOfTheirJobs(t *testing.T) {
	t.Parallel()
	v := view(2)
	v.Waiting[0].Needs.MemoryMiB, v.Waiting[0].Needs.GPUs = 3000, 1
	v.Room, v.Held = []Room{room(2)}, 2 // this worker has neither
	d := Decide(now, scaled(), v)
	if len(d.Asks) != 1 || d.Asks[0].Needs.MemoryMiB != 6000 || d.Asks[0].Needs.GPUs != 2 {
		t.Errorf("%+v", d)
	}
}

// Pilots that wait at their site are withdrawn, the newest first, when no job has needed them for the scale's time.
func TestUnneededPilotsAreWithdrawn(t *testing.T) {
	t.Parallel()
	long, short := now.Add(-time.Minute), now.Add(-59*time.Second)
	s, v := scaled(), view(1)
	v.Held = 8
	v.Coming = []Coming{{room(2), 1, long}, {room(2), 2, long}, {room(2), 3, long}, {room(2), 4, short}}
	d := Decide(now, s, v)
	if len(d.Withdraw) != 2 || d.Withdraw[0] != 3 || d.Withdraw[1] != 2 || len(d.Spare) != 3 {
		t.Errorf("%+v", d)
	}
	s.Min = 6
	if d := Decide(now, s, v); len(d.Withdraw) != 1 || d.Withdraw[0] != 3 {
		t.Errorf("with a minimum: %+v", d)
	}
}

func TestSiteWithFailingPilotsIsAvoidedForGrowingTimes(t *testing.T) {
	t.Parallel()
	if !RetryAt(0, now).IsZero() || RetryAt(1, now) != now.Add(retryMin) || RetryAt(3, now) != now.Add(4*retryMin) ||
		RetryAt(1000, now) != now.Add(retryMax) {
		t.Error(RetryAt(1, now), RetryAt(3, now), RetryAt(1000, now))
	}
}

// All workers of a site that is one machine share its cpus and its memory.
func TestWorkersShareTheMachine(t *testing.T) {
	t.Parallel()
	machine := corral.Resources{CPUs: 8, MemoryMiB: 16_000, DiskMiB: corral.Unlimited}
	for name, tt := range map[string]struct {
		left   corral.Resources
		needs  int // MiB of each of six jobs
		memory []int
		why    string
	}{
		"by cpus": {machine, 100, []int{4000, 4000, 4000}, ""},
		"by memory": {machine, 9000, []int{9000},
			"site near is a machine of which 6 cpus and 7000 MiB of memory are free of pilots"},
		"beside others": {corral.Resources{CPUs: 5, MemoryMiB: 6000, DiskMiB: corral.Unlimited}, 1500, []int{4000, 2000},
			"site near is a machine of which 1 cpu and 0 MiB of memory are free of pilots"},
		"none left": {corral.Resources{CPUs: -2, MemoryMiB: -500}, 100, nil,
			"site near is a machine of which 0 cpus and 0 MiB of memory are free of pilots"},
	} {
		v := view(6)
		v.Waiting[0].Needs.MemoryMiB = tt.needs
		v.Sites = []Supplier{{Name: "near", Pilots: 100, Hosts: []corral.Resources{machine}, Left: &tt.left}}
		d := Decide(now, scaled(), v)
		var memory []int
		for _, a := range d.Asks {
			memory = append(memory, a.Needs.MemoryMiB)
		}
		if !slices.Equal(memory, tt.memory) {
			t.Errorf("%s: workers of %v MiB, want %v: %s", name, memory, tt.memory, d.Report)
		}
		if !strings.Contains(d.Report, tt.why) {
			t.Errorf("%s: %q, want %q", name, d.Report, tt.why)
		}
	}
}

// Jobs that the present workers can run before another worker would be there are left to them for that long.
func TestShortQueuesAreLeftToPresentWorkers(t *testing.T) {
	t.Parallel()
	short := func(edit func(v *View)) View {
		v := view(6)
		v.Waiting[0].Needs.Time = 10 * time.Second
		v.Whole, v.Held = []Room{room(2)}, 2
		for i := range v.Sites {
			v.Sites[i].StartUp = time.Minute
		}
		edit(&v)
		return v
	}
	for name, tt := range map[string]struct {
		edit func(v *View)
		asks int
	}{
		"half a start-up":      {func(*View) {}, 0},
		"more than a start-up": {func(v *View) { v.Waiting[0].Jobs = 12 }, 3},
		"they still wait":      {func(v *View) { v.Waited = time.Minute }, 3},
		"no estimate":          {func(v *View) { v.Waiting[0].Needs.Time = 0 }, 3},
		"they fit no worker":   {func(v *View) { v.Waiting[0].Needs.MemoryMiB = 2000 }, 3},
		"longer than a worker": {func(v *View) { v.Whole[0].Left = time.Second }, 3},
		"no workers":           {func(v *View) { v.Whole = nil }, 3},
		"a quicker site":       {func(v *View) { v.Sites[1].StartUp = time.Second }, 3},
		"that one is closed":   {func(v *View) { v.Sites[1].StartUp, v.Sites[1].Closed = time.Second, "is gone" }, 0},
		"years of work":        {func(v *View) { v.Waiting[0].Jobs, v.Waiting[0].Needs.Time = 1<<30, 30*time.Minute }, 3},
	} {
		d := Decide(now, scaled(), short(tt.edit))
		if len(d.Asks) != tt.asks || (tt.asks == 0) != strings.Contains(d.Report, "6 of these are left to the workers") {
			t.Errorf("%s: %d workers, want %d: %s", name, len(d.Asks), tt.asks, d.Report)
		}
	}
}

// If no site is open, that is the reason why no worker is requested.
func TestShortQueuesAtClosedSites(t *testing.T) {
	t.Parallel()
	v := view(6)
	v.Whole, v.Held = []Room{room(2)}, 2
	for i := range v.Sites {
		v.Sites[i].StartUp, v.Sites[i].Closed = time.Hour, "is gone"
	}
	if d := Decide(now, scaled(), v); len(d.Asks) > 0 || !strings.Contains(d.Report, "site near is gone; site far is gone") {
		t.Errorf("%+v", d)
	}
}
