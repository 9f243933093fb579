package main

import "testing"

// Ten tasks of one kind need 100 MiB for a second each, and ask for a quarter. Alone, each is killed at 25 and 50 MiB.
// If they learn by kind, only the first is, and the others get its size, rounded up to 108 MiB.
func TestWasteByHand(t *testing.T) {
	t.Parallel()
	var tasks []sized
	for range 10 {
		tasks = append(tasks, sized{"a", 100, 1})
	}
	for k, want := range []waste{
		{given: 10 * (25 + 50 + 100), used: 1000, tasks: 10, kills: 20, twice: 10},
		{given: 25 + 50 + 100 + 9*100, used: 1000, tasks: 10, kills: 2, twice: 1},
		{given: 25 + 50 + 100 + 9*108, used: 1000, tasks: 10, kills: 2, twice: 1},
	} {
		var got waste
		if got.run(tasks, sizers[k].of, 0.25); got != want {
			t.Errorf("%s: %+v, want %+v", sizers[k].name, got, want)
		}
	}
}
