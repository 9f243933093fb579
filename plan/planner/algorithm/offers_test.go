package algorithm

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A cpu-hour of a price with weights includes the cpu's share of the host's memory and, if needed, of its GPUs.
func TestHourly(t *testing.T) {
	t.Parallel()
	host := corral.Resources{CPUs: 16, MemoryMiB: 65536, GPUs: 4, DiskMiB: plan.Unlimited}
	cpus := corral.Resources{CPUs: 16, MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}
	for _, c := range []struct {
		price string
		host  corral.Resources
		gpus  bool
		want  cost.Money
	}{
		{"1ch/cpu-hour", host, true, 1_000_000},
		{"3ch/host-hour", host, true, 3_000_000},
		{"1ch/sum(cpu=1,mem=0.5,gpu=8)-hour", host, false, 3_000_000},
		{"1ch/sum(cpu=1,mem=0.5,gpu=8)-hour", host, true, 5_000_000},
		{"1ch/max(cpu=1,mem=0.5)-hour", host, false, 2_000_000},
		{"1ch/sum(cpu=1,mem=0.5,gpu=8)-hour", cpus, true, 1_000_000},
		{"0ch/cpu-hour", host, false, 1},
	} {
		tariff, err := cost.ParseTariff(c.price, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := hourly(&plan.Site{Host: c.host, Tariff: plan.Tariff(tariff)}, c.gpus); got != c.want {
			t.Errorf("%s, with gpus %t: %s, want %s", c.price, c.gpus, got, c.want)
		}
	}
}
