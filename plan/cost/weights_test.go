package cost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// The resource that weighs most determines the price, as with Slurm's PriorityFlags=MAX_TRES and
// TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=8.0.
func TestTheHeaviestResourceIsBilled(t *testing.T) {
	t.Parallel()
	tariff, err := cost.ParseTariff("2SU/max(cpu=1,mem=0.25,gpu=8)-hour", "1h")
	if err != nil {
		t.Fatal(err)
	}
	if got := tariff.Rate.String(); got != "2SU/max(cpu=1,mem=0.25,gpu=8)-hour" {
		t.Errorf("it is written as %s", got)
	}
	for _, tt := range []struct {
		h    cost.Holding
		want string
	}{
		{cost.Holding{Hosts: 1, CPUs: 4, MemoryMiB: 8192, Held: time.Hour}, "8SU"},
		{cost.Holding{Hosts: 1, CPUs: 4, MemoryMiB: 65536, Held: time.Hour}, "32SU"},
		{cost.Holding{Hosts: 2, CPUs: 8, MemoryMiB: 8192, GPUs: 2, Held: 61 * time.Minute}, "64SU"},
		{cost.Holding{Hosts: 1, CPUs: 1, MemoryMiB: 5120, Held: time.Minute}, "2.5SU"},
	} {
		got := cost.Amount{Money: tariff.Charge(tt.h, cost.Spending{}).Billed, Unit: "SU"}
		if got.String() != tt.want {
			t.Errorf("%+v costs %s, want %s", tt.h, got, tt.want)
		}
	}
	sum, err := cost.ParseTariff("1ch/sum(cpu=1,mem=0.25,gpu=8)-hour", "")
	h := cost.Holding{Hosts: 1, CPUs: 4, MemoryMiB: 8192, GPUs: 1, Held: time.Hour}
	if got := sum.Charge(h, cost.Spending{}).Billed; err != nil || got != 14_000_000 {
		t.Errorf("the sum of the weights is %d, %v; want 14", got, err)
	}
	if got := tariff.OfCPUMinutes(60, 4) + sum.OfCPUMinutes(60, 4); got != 3_000_000 {
		t.Errorf("a cpu-hour costs at least %d under both tariffs, want 3", got)
	}
	for price, why := range map[string]string{
		"1SU/max(cpu=1,disk=2)-hour":  `"disk=2" must weigh cpu, mem (for each GiB) or gpu`,
		"1SU/max(cpu=1,cpu=2)-hour":   `"cpu=2" must weigh`,
		"1SU/max(cpu=-1)-hour":        "is negative",
		"1SU/max(cpu=1)":              "must end with )-hour",
		"1SU/max()-hour":              "must weigh",
		"1SU/sum(disk=2)-hour":        "or sum(cpu=1,mem=0.25,gpu=8)-hour",
		"1SU/greatest(cpu=1)-hour":    "must be one of",
		"1SU/max(cpu=1,mem=nan)-hour": "mem=nan",
	} {
		if _, err := cost.ParseTariff(price, ""); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", price, err, why)
		}
	}
}
