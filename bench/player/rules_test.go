package main

import (
	"slices"
	"testing"
)

// On a worker of two cpus with a task of 100 s, a task of one cpu and 8 s overtakes a task of two cpus at 15 s. At 25 s
// the worker is kept free for it: it starts a hop after the long task has ended, at 119 s, before the small ones that
// are left.
func TestWorkerIsKeptForAnOvertakenTask(t *testing.T) {
	t.Parallel()
	tasks := tasksOf(false, 100, 90, 8, 8, 8, 8)
	tasks[1].needs.CPUs = 2
	r := gameOf(t, hpc(), tasks, asked(2, 0, 600)).play(luck{})
	var start []seconds
	for _, at := range r.schedule() {
		start = append(start, at.Start/second)
	}
	if want := []seconds{17, 17, 119, 211, 211, 221}; !slices.Equal(start, want) {
		t.Errorf("the tasks start at %v, want %v", start, want)
	}
}

// A task of 60 s takes 120 s at half the speed. A worker that stays for 90 s does not get it.
func TestMatchingBySpeed(t *testing.T) {
	t.Parallel()
	s := hpc()
	s.Speed = 0.5
	long := asked(1, 0, 600)
	long.MinStay = 300 * second
	g := gameOf(t, s, tasksOf(false, 60), asked(1, 0, 110), long)
	wantMakespan(t, g.play(luck{}).result(), 137)
}

func TestReserveOfRealPilots(t *testing.T) {
	t.Parallel()
	for walltime, want := range map[seconds]seconds{ // a twentieth, at most a minute, and two seconds or a tenth
		600: (600 - 30 - 2) * second, 7200: (7200 - 60 - 2) * second, 25: (25-2)*second - 13*second/10,
	} {
		g := gameOf(t, hpc(), tasksOf(false, 1), asked(1, 0, walltime))
		g.reserve = true
		r := &run{game: g}
		if got := r.until(&pilot{request: g.pilots[0]}); got != want {
			t.Errorf("workers of a pilot of %d s leave after %s, want %s", walltime, got, want)
		}
	}
}

// Four tasks of 100 s each: one cpu takes 406 s and is the cheapest, four take 100.
func TestRivals(t *testing.T) {
	t.Parallel()
	s := hpc()
	s.HostCPUs, s.Walltime, s.Pilots = 4, 3600*second, 4
	g := gameOf(t, s, tasksOf(false, 100, 100, 100, 100))
	front := g.rivals(map[place]*site{{"hpc", ""}: &s})
	if len(front) < 2 {
		t.Fatalf("the front is %+v", front)
	}
	fastest, cheapest := front[0], front[len(front)-1]
	if fastest.Makespan != 112*second || fastest.Pilots*fastest.CPUs < 4 {
		t.Errorf("the fastest is %+v, want four cpus for 112 s", fastest)
	}
	if cheapest.Pilots != 1 || cheapest.CPUs != 1 || cheapest.Makespan != (10+4*102)*second {
		t.Errorf("the cheapest is %+v, want one cpu", cheapest)
	}
	s.Pilots, s.Hosts, s.CPUs = 1, 1, 2
	for _, r := range g.rivals(map[place]*site{{"hpc", ""}: &s}) {
		if r.Pilots*r.Hosts*r.CPUs > 2 {
			t.Errorf("%+v is over the site's limit", r)
		}
	}
}
