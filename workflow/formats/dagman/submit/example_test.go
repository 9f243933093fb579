package submit_test

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A description with a list of items is executed for a node that sets the macro "night".
func Example() {
	const text = `executable = measure
arguments  = --night $(night) $(star)
request_memory = 1.5 GB
queue star in (vega, sirius)
`
	d, err := submit.Parse(submit.NewLines(strings.NewReader(text), "measure.sub", submit.MiB), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := int64(submit.MiB)
	given := submit.Given{Vars: []submit.Var{{Name: "night", Value: "7"}}, Left: &budget}
	err = d.Each(given, func(j *submit.Proc) error {
		arguments, _, err := j.Value("arguments")
		if err != nil {
			return err
		}
		memory, _, err := j.Value("request_memory")
		bytes, _ := submit.Bytes(memory, submit.MiB)
		fmt.Printf("%s: %s, %g MiB\n", j.At(), arguments, bytes/submit.MiB)
		return err
	})
	fmt.Println(err)
	// Output:
	// measure.sub:4: --night 7 vega, 1536 MiB
	// measure.sub:4: --night 7 sirius, 1536 MiB
	// <nil>
}
