package queue_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A narrow job is backfilled beside a running one, because it ends before the wide job could start.
func ExampleReplay() {
	jobs := []queue.Job{
		{Processors: 3, Requested: 4 * time.Hour, Runtime: 4 * time.Hour},
		{Processors: 4, Requested: time.Hour, Runtime: time.Hour},
		{Submit: time.Minute, Processors: 1, Requested: 2 * time.Hour, Runtime: time.Hour},
	}
	for _, h := range queue.Replay(queue.Machine{Processors: 4, Policy: queue.EASY}, jobs) {
		fmt.Printf("%d processors from %s to %s, after a wait of %s\n", h.Processors, h.Start, h.End, h.Wait())
	}
	// Output:
	// 3 processors from 0s to 4h0m0s, after a wait of 0s
	// 4 processors from 4h0m0s to 5h0m0s, after a wait of 4h0m0s
	// 1 processors from 1m0s to 1h1m0s, after a wait of 0s
}

// With conservative backfilling, a job that fits the profile of free processors delays no other: the profile can be
// advertised.
func ExampleQueue_Free() {
	q := queue.New(queue.Machine{Processors: 4, Policy: queue.Conservative}, nil)
	for _, n := range []int{3, 4} {
		q.Submit(queue.Job{Processors: n, Requested: 2 * time.Hour, Runtime: queue.Open})
	}
	q.Advance(0, nil)
	free := q.Free()
	for at, n := range free.Steps() {
		fmt.Println("from", at, n, "are free")
	}
	at, _ := free.Fit(0, time.Hour, 2)
	fmt.Println("2 for an hour: from", at)
	// Output:
	// from 0s 1 are free
	// from 2h0m0s 0 are free
	// from 4h0m0s 4 are free
	// 2 for an hour: from 4h0m0s
}
