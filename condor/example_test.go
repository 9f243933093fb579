package condor_test

import (
	"fmt"
	"os"

	"github.com/corral-pilot/corral/condor"
)

// One cluster of two jobs. Every text is literal, including the blank and the dollar sign.
func ExampleSubmit_WriteTo() {
	jobs := condor.Submit{
		Executable: "/bin/echo", Log: "jobs.log", Request: condor.Request{Cpus: 1},
		Procs: []condor.Proc{
			{Arguments: []string{"it costs", "5$"}, Stdout: "first"},
			{Stdout: "second"},
		},
	}
	if _, err := jobs.WriteTo(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// universe = vanilla
	// executable = /bin/echo
	// transfer_executable = false
	// log = jobs.log
	// request_cpus = 1
	// notification = never
	// Letters = a b,c	d
	// Blank = $SUBSTR(Letters,1,1)
	// Comma = $SUBSTR(Letters,3,1)
	// Tab = $SUBSTR(Letters,5,1)
	// arguments = $(Own0)
	// My.Environment = ""
	// input = /dev/null
	// output = $(Own3)
	// error = /dev/null
	// queue Own0, Own3 from (
	// "'it$(Blank)costs'$(Blank)5$(DOLLAR)" first
	// "" second
	// )
}
