package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func TestDistinctTakesTheSame(t *testing.T) {
	t.Parallel()
	number := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var o Offer
		for range rapid.IntRange(0, 12).Draw(t, "capacities") {
			o.Capacities = append(o.Capacities, Capacity{
				CPUs: number.Draw(t, "cpus"), MemoryMiB: number.Draw(t, "memory"), GPUs: number.Draw(t, "gpus"),
				DiskMiB: number.Draw(t, "disk"), Left: time.Duration(number.Draw(t, "left")),
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
		{[]Capacity{small}, of(1, 1, 2*time.Hour), "needs 2h0m0s; the worker here that stays longest has 1h0m0s left"},
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
