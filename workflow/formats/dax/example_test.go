package dax_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dax"
)

func ExampleRead() {
	const text = `<adag name="mosaic" version="2.1">
  <job id="ID1" name="project" runtime="13.5">
    <uses file="raw" link="input" size="4000"/>
    <uses file="projected" link="output" size="8000"/>
  </job>
  <job id="ID2" name="add" runtime="2.5">
    <uses file="projected" link="input" size="8000"/>
  </job>
  <child ref="ID2"><parent ref="ID1"/></child>
</adag>
`
	wf, _, err := dax.Read(context.Background(), strings.NewReader(text), "mosaic.dax", workflow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, t := range wf.Tasks {
		fmt.Println(t.ID, t.Name, t.Estimate, wf.Bytes(i), "bytes, after", wf.Graph.Parents(i))
	}
	fmt.Println(wf.Runnable())
	// Output:
	// ID1 project 13.5s 12000 bytes, after []
	// ID2 add 2.5s 8000 bytes, after [0]
	// mosaic.dax:2: task "ID1": it has no command (in WfFormat: command.program of its execution task; in DAX: an argument)
}
