package array_test

import (
	"fmt"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/formats/array"
)

// Each selected line of a file becomes a task, which finds the line in its environment.
func Example() {
	numbers, err := array.ParseNumbers("1,3")
	if err != nil {
		fmt.Println(err)
		return
	}
	elements, err := array.Lines("stars.txt", "vega\nsirius\nrigel\n", numbers)
	if err != nil {
		fmt.Println(err)
		return
	}
	command := array.Command{
		Name: "stars", Argv: []string{"/bin/sh", "-c", `./measure "$CORRAL_ENTRY"`}, Inputs: []string{"measure"},
		Resources: corral.Resources{CPUs: 2, MemoryMiB: 500},
	}
	wf, err := command.Workflow(elements)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range wf.Tasks {
		fmt.Println(wf.Name, t.ID, t.Env["CORRAL_ENTRY"], t.Inputs, t.CPUs, "cpus")
	}
	// Output:
	// stars 1 vega [measure] 2 cpus
	// stars 3 rigel [measure] 2 cpus
}
