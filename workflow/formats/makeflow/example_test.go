package makeflow_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/makeflow"
)

func ExampleRead() {
	text := `SORT=/usr/bin/sort
CATEGORY=sorting
MEMORY=500
a.sorted: a
	$SORT a > a.sorted
b.sorted: b
	$SORT b > b.sorted
CATEGORY=merging
all: a.sorted b.sorted
	$SORT -m a.sorted b.sorted > all
`
	wf, _, err := makeflow.Read(context.Background(), strings.NewReader(text), "sort.mf", workflow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, t := range wf.Tasks {
		fmt.Printf("%s %s: %q, %d MiB, after %v\n", t.Name, t.ID, t.Argv[2], t.MemoryMiB, wf.Graph.Parents(i))
	}

	text = strings.Replace(text, "$SORT -m", "$MERGE", 1)
	_, _, err = makeflow.Read(context.Background(), strings.NewReader(text), "sort.mf", workflow.Options{})
	fmt.Println(err)
	// Output:
	// sorting a.sorted: "/usr/bin/sort a > a.sorted", 500 MiB, after []
	// sorting b.sorted: "/usr/bin/sort b > b.sorted", 500 MiB, after []
	// merging all: "/usr/bin/sort -m a.sorted b.sorted > all", 0 MiB, after [0 1]
	// sort.mf:10: variable "MERGE" is defined neither before this line nor in the environment
}
