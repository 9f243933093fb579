package slot_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/slot"
)

// A hole before another user's job, and free time after it: two tasks share the hole, which is charged as a whole, and
// a third task is too long for it.
func Example() {
	l := slot.NewList([]slot.Slot{
		{Length: 3 * time.Hour, Processors: 4, Price: 1_000_000},
		{Start: 5 * time.Hour, Length: time.Hour, Processors: 8, Price: 1_000_000, Divisible: true, Extensible: true},
	})
	for _, length := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
		start, _ := l.Place(0, length, 2)
		fmt.Printf("two processors for %s: from %s, in all for %s\n", length, start, l.Cost())
	}
	// Output:
	// two processors for 1h0m0s: from 0s, in all for 12
	// two processors for 2h0m0s: from 0s, in all for 12
	// two processors for 4h0m0s: from 5h0m0s, in all for 20
}
