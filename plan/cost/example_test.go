package cost_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// Two pilots of 16 cpus are held for 90 and 20 minutes; each hour begun is billed.
func Example() {
	tariff, err := cost.ParseTariff("0.085USD/cpu-hour", "1h")
	if err != nil {
		fmt.Println(err)
		return
	}
	var total cost.Spending
	for _, held := range []time.Duration{90 * time.Minute, 20 * time.Minute} {
		total = tariff.Charge(cost.Holding{Hosts: 1, CPUs: 16, Held: held}, total)
	}
	fmt.Printf("used: %.2f cpu-hours, %s %s\n", total.UsedHours, total.Used.Round(2), tariff.Rate.Unit)
	fmt.Printf("billed: %.2f cpu-hours, %s %s\n", total.BilledHours, total.Billed.Round(2), tariff.Rate.Unit)
	// Output:
	// used: 29.33 cpu-hours, 2.49 USD
	// billed: 48.00 cpu-hours, 4.08 USD
}

// More nodes of the same price lower the cost only if the speed-up is more than linear.
func ExampleMarginals() {
	steps := []cost.Step{
		{Nodes: 1, Point: cost.Point{Makespan: 8 * time.Hour, Cost: 8_000_000}},
		{Nodes: 2, Point: cost.Point{Makespan: 5 * time.Hour, Cost: 10_000_000}},
	}
	all, err := cost.Marginals(steps)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range all {
		fmt.Printf("%d nodes save %s and cost %s more\n", m.Nodes, m.Saved, m.Extra)
		fmt.Println(m.Warning)
	}
	// Output:
	// 2 nodes save 3h0m0s and cost 2 more
	// 2 nodes are only 1.60 times as fast as 1, less than the linear 2.00 times: the cost rises by 2.00
}
