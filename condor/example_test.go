package condor_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
)

func ExampleEvents() {
	log := `000 (012.000.000) 2026-11-21 04:00:45.158 Job submitted from host: <192.0.2.1:9618>
...
012 (012.000.000) 2026-11-21 04:00:49.453 Job was held.
	Error from slot1@node: no such file
	Code 13 Subcode 2
...
012 (012.000.000) 2026-11-21 04:0`
	for event, err := range condor.Events(strings.NewReader(log), time.Now()) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch detail := event.Detail.(type) {
		case condor.Submitted:
			fmt.Println(event.Job, "is in the queue of", detail.Host)
		case condor.Held:
			fmt.Println(event.Job, "waits for somebody:", detail.Reason)
		}
	}
	// Output:
	// 12.0 is in the queue of <192.0.2.1:9618>
	// 12.0 waits for somebody: Error from slot1@node: no such file
	// event log at byte 204: cut short by the end of the log: "012 (012.000.000) 2026-11-21 04:0"
}

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
