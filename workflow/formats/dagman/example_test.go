package dagman_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// A .dag with submit descriptions inside, whose first node was done in an earlier run, according to the rescue file.
func ExampleRead() {
	const text = `JOB split {
	executable = /bin/split
	arguments = -n 2 sky
	transfer_input_files = sky
}
JOB measure {
	executable = /bin/cksum
	arguments = part$(Process)
	request_memory = 2GB
	queue 2
}
PARENT split CHILD measure
`
	wf, _, err := dagman.Read(context.Background(), strings.NewReader(text), "sky.dag", workflow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rescue, err := dagman.ReadRescue(strings.NewReader("DONE split\n"), "sky.dag.rescue001")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("unknown nodes:", rescue.Mark(wf))
	done := wf.DoneBefore()
	for i, t := range wf.Tasks {
		fmt.Println(t.ID, t.Argv, t.MemoryMiB, "MiB, after", wf.Graph.Parents(i), "done:", done[i])
	}
	// Output:
	// unknown nodes: []
	// split [/bin/split -n 2 sky] 0 MiB, after [] done: true
	// measure.0 [/bin/cksum part0] 2048 MiB, after [0] done: false
	// measure.1 [/bin/cksum part1] 2048 MiB, after [0] done: false
}
