package cost_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// Two pilots of 16 cpus are held for 90 and 20 minutes; each hour begun is billed.
func Example() {
	rate, _ := cost.ParseRate("0.085USD/cpu-hour")
	billing, _ := cost.ParseBilling("1h")
	var actual, billed cost.Money
	for _, held := range []time.Duration{90 * time.Minute, 20 * time.Minute} {
		a, b := rate.Charge(cost.Holding{Hosts: 1, CPUs: 16, Held: held}, billing)
		actual, billed = actual.Plus(a), billed.Plus(b)
	}
	fmt.Println("actual", actual.Round(2), "billed", billed.Round(2), rate.Unit)
	// Output:
	// actual 2.49 billed 4.08 USD
}
