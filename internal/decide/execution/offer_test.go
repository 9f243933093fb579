package execution

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// graph returns the graph of n tasks with these edges.
func graph(tb testing.TB, n int, edges ...[2]int) *dag.Graph {
	tb.Helper()
	g, err := dag.New(n, edges)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func TestDistinctTakesTheSame(t *testing.T) {
	t.Parallel()
	number := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var o Offer
		for range rapid.IntRange(0, 12).Draw(t, "capacities") {
			o.Capacities = append(o.Capacities, Capacity{
				CPUs: number.Draw(t, "cpus"), MemoryMiB: number.Draw(t, "memory"), GPUs: number.Draw(t, "gpus"),
				DiskMiB: number.Draw(t, "disk"), Left: time.Duration(number.Draw(t, "left")),
				Speed: rapid.SampledFrom([]corral.Speed{0, 0.5, 1}).Draw(t, "speed"),
			})
		}
		n := need{corral.Resources{
			CPUs: number.Draw(t, "cpus"), MemoryMiB: number.Draw(t, "memory"), GPUs: number.Draw(t, "gpus"),
			DiskMiB: number.Draw(t, "disk"),
		}, time.Duration(number.Draw(t, "time"))}
		d := o.distinct()
		if len(d.Capacities) > len(o.Capacities) || d.takes(n) != o.takes(n) {
			t.Fatalf("%+v takes %+v: %v, distinct %+v: %v", o, n, o.takes(n), d, d.takes(n))
		}
		for i, c := range d.Capacities {
			for k, other := range d.Capacities {
				if i != k && other.fits(c.need()) {
					t.Fatalf("%+v covers %+v", other, c)
				}
			}
		}
	})
}

func TestLack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ends := now.Add(time.Hour + StartMargin)
	small := CapacityOf(corral.Worker{ID: "s", CPUs: 1, MemoryMiB: 8192, Connected: true, EndsAt: ends}, now)
	wide := CapacityOf(corral.Worker{ID: "w", CPUs: 8, MemoryMiB: 1024, Connected: true, EndsAt: ends}, now)
	leaving := CapacityOf(corral.Worker{ID: "l", CPUs: 8, MemoryMiB: 8192, EndsAt: ends, Connected: true, Draining: true}, now)
	slow := CapacityOf(corral.Worker{ID: "slow", CPUs: 1, MemoryMiB: 8192, Connected: true, EndsAt: ends, Speed: 0.5}, now)
	of := func(cpus, memory int, time time.Duration) need {
		return need{corral.Resources{CPUs: cpus, MemoryMiB: memory}, time}
	}
	gpu, disk := of(1, 1, 1), of(1, 1, 1)
	gpu.of.GPUs, disk.of.DiskMiB = 2, 4096
	tests := []struct {
		capacities []Capacity
		need       need
		want       string
	}{
		{nil, of(1, 1, 1), "none is requested"},
		{[]Capacity{leaving}, of(1, 1, 1), "those here take nothing any more and none is requested"},
		{[]Capacity{small, leaving}, of(2, 1, 1), "needs 2 cpus; the largest worker here has 1"},
		{[]Capacity{small, wide}, of(2, 4096, 90*time.Second),
			"needs 2 cpus, 4096 MiB of memory and 1m30s; no worker here has all of that together"},
		{[]Capacity{small, {CPUs: 1, MemoryMiB: 1, GPUs: 1, Left: time.Hour}}, gpu,
			"needs 2 gpus; the largest worker here has 1"},
		{[]Capacity{small}, disk, "needs 4096 MiB of disk; the largest worker here has 0 MiB"},
		{[]Capacity{small, wide}, of(2, 4096, time.Hour),
			"needs 2 cpus, 4096 MiB of memory and 1h0m0s; no worker here has all of that together"},
		{[]Capacity{small}, of(1, 1, 2*time.Hour+400*time.Millisecond),
			"needs 2h0m0s; the worker here that stays longest has 1h0m0s left"},
		{[]Capacity{slow}, of(1, 1, 50*time.Minute),
			"needs 50m0s; the worker here that stays longest has 30m0s left at its speed"},
		{[]Capacity{slow, {Worker: "fast", CPUs: 1, MemoryMiB: 1, Left: 40 * time.Minute}}, of(1, 1, 50*time.Minute),
			"needs 50m0s; the worker here that stays longest has 40m0s left"},
		{[]Capacity{{CPUs: 1, MemoryMiB: 1, Left: 1234*time.Millisecond + 400*time.Microsecond}}, of(1, 1, 9*time.Second),
			"needs 9s; the worker requested that stays longest has 1.234s left"},
	}
	for _, tt := range tests {
		o := Offer{Capacities: tt.capacities}
		if o.takes(tt.need) {
			t.Errorf("%+v takes %+v", o, tt.need)
		}
		if got := o.lack(tt.need); !strings.Contains(got, tt.want) {
			t.Errorf("lack = %q, want %q", got, tt.want)
		}
	}
	if here := (Offer{Capacities: []Capacity{small, leaving, {}}}).present(); fmt.Sprint(here) != "map[l:true s:true]" {
		t.Errorf("present = %v", here)
	}
}

// A misfit can arise only when the worker with the most time left for a job has too little.
func TestSlack(t *testing.T) {
	t.Parallel()
	o := Offer{Capacities: []Capacity{{CPUs: 1, Left: time.Minute}, {CPUs: 1, Left: time.Hour}, {CPUs: 4, Left: 20 * time.Minute},
		{GPUs: 1, Left: time.Hour, Speed: 0.5}}}
	for n, want := range map[need]time.Duration{
		{corral.Resources{CPUs: 1}, 10 * time.Second}: time.Hour - 10*time.Second,
		{corral.Resources{CPUs: 2}, 10 * time.Minute}: 10 * time.Minute,
		{corral.Resources{CPUs: 1}, time.Hour}:        0,
		{corral.Resources{CPUs: 8}, time.Second}:      0,
		{corral.Resources{GPUs: 1}, 10 * time.Minute}: 40 * time.Minute,
		{corral.Resources{GPUs: 1}, 40 * time.Minute}: 0,
	} {
		if got := o.slack(n); got != want {
			t.Errorf("slack of %+v = %s, want %s", n, got, want)
		}
	}
}

// The sentence about a task that lacks only time says so if the time is the default, which users may not know.
func TestShortageNamesTheDefaultTime(t *testing.T) {
	t.Parallel()
	worker := Capacity{Worker: "w", CPUs: 2, MemoryMiB: 1000, Left: time.Minute}
	for _, tt := range []struct {
		name    string
		tasks   []TaskSpec
		cluster bool
		want    string
	}{
		{"a default", []TaskSpec{{ID: "a", CPUs: 1, Estimate: time.Hour, Usual: true}}, false,
			"task a needs 1h0m0s; the worker here that stays longest has 1m0s left" + usualTime},
		{"its own time", []TaskSpec{{ID: "a", CPUs: 1, Estimate: time.Hour}}, false,
			"task a needs 1h0m0s; the worker here that stays longest has 1m0s left"},
		{"a default, and not even cpus", []TaskSpec{{ID: "a", CPUs: 4, Estimate: time.Hour, Usual: true}}, false,
			"task a needs 4 cpus; the largest worker here has 2"},
		{"two in a job", slices.Repeat([]TaskSpec{{ID: "a", CPUs: 1, Estimate: time.Hour, Usual: true}}, 2), true,
			"the clustered job of task a and 1 more needs 2h0m0s; the worker here that stays longest has 1m0s left"},
		{"two jobs", slices.Repeat([]TaskSpec{{ID: "a", CPUs: 4, Estimate: time.Hour}}, 2), false,
			"task a needs 4 cpus; the largest worker here has 2; one more task cannot run either"},
		{"three jobs", slices.Repeat([]TaskSpec{{ID: "a", CPUs: 4, Estimate: time.Hour}}, 3), false,
			"task a needs 4 cpus; the largest worker here has 2; 2 more tasks cannot run either"},
	} {
		s := Spec{Graph: graph(t, len(tt.tasks)), Tasks: tt.tasks}
		if tt.cluster {
			s.Clusters = [][]int{{0, 1}}
		}
		x := New(s)
		x.Release(time.Unix(1e9, 0), Offer{})
		if got := x.Shortage(Offer{CPUs: 2, Capacities: []Capacity{worker}}); got.Able || got.What != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, got, tt.want)
		}
	}
}

// News are the cpus of workers that were unknown, and a larger number of cpus than ever before, each once. A worker that
// offers nothing has none.
func TestNews(t *testing.T) {
	t.Parallel()
	x, now := New(Spec{Graph: graph(t, 1), Tasks: []TaskSpec{{ID: "a", CPUs: 1, Estimate: time.Second}}}), time.Unix(1e9, 0).UTC()
	draining := Capacity{Worker: "d"}
	w, requested := Capacity{Worker: "w", CPUs: 4}, Capacity{CPUs: 8}
	at := ToMsec(now)
	for _, tt := range []struct {
		offer Offer
		want  []Record
	}{
		{Offer{CPUs: 4, Capacities: []Capacity{draining, w, requested}}, []Record{{At: at, Met: &Meeting{"w", 4}}, {At: at, CPUs: 4}}},
		{Offer{CPUs: 4, Capacities: []Capacity{draining, w}}, nil},
		{Offer{CPUs: 3, Capacities: []Capacity{w}}, nil},
		{Offer{CPUs: 5, Capacities: []Capacity{w}}, []Record{{At: at, CPUs: 5}}},
	} {
		got := x.News(now, tt.offer)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.offer, diff)
		}
		for _, r := range got {
			x.Apply(r)
		}
	}
}
