package workload_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// A trace of two jobs is replayed on its machine: the second job needs processors that the first one holds, and so
// waits until it ends.
func ExampleReadJobs() {
	const text = `; MaxProcs: 64
1 1000 -1 3600 48 -1 -1 48 7200 -1 1 3 -1 -1 -1 -1 -1 -1
2 1600 -1 1800 32 -1 -1 32 3600 -1 1 4 -1 -1 -1 -1 -1 -1
`
	trace, err := workload.ReadJobs(context.Background(), strings.NewReader(text), "machine.swf")
	if err != nil {
		fmt.Println(err)
		return
	}
	processors, _ := trace.Header.Machine()
	m := queue.Machine{Processors: processors, Policy: queue.FCFS}
	for _, h := range queue.Replay(m, trace.Jobs) {
		fmt.Println(h.Processors, "of", processors, "processors, submitted at", h.Submit, "waited", h.Wait())
	}
	// Output:
	// 48 of 64 processors, submitted at 0s waited 0s
	// 32 of 64 processors, submitted at 10m0s waited 50m0s
}
