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
