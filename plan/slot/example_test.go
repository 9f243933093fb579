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
		start, _ := l.Find(0, length, 2)
		l.Take()
		fmt.Printf("two processors for %s: from %s, in all for %s\n", length, start, slot.Cost(l))
	}
	// Output:
	// two processors for 1h0m0s: from 0s, in all for 12
	// two processors for 2h0m0s: from 0s, in all for 12
	// two processors for 4h0m0s: from 5h0m0s, in all for 20
}

// A job of two processors does not fit beside a running job of three, and waits for its end; a job of one processor
// fits at once.
func ExampleProfile() {
	p := slot.NewProfile(4, 0)
	p.Take(0, 2*time.Hour, 3)
	for _, n := range []int{1, 2} {
		at, _ := p.Fit(0, time.Hour, n)
		fmt.Printf("%d processors for an hour: from %s\n", n, at)
	}
	fmt.Println("free in the first three hours:", p.Least(0, 3*time.Hour))
	// Output:
	// 1 processors for an hour: from 0s
	// 2 processors for an hour: from 2h0m0s
	// free in the first three hours: 1
}
