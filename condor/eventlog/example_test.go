package eventlog_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
)

func ExampleEvents() {
	log := `000 (012.000.000) 2026-11-21 04:00:45.158 Job submitted from host: <192.0.2.1:9618>
...
012 (012.000.000) 2026-11-21 04:00:49.453 Job was held.
	Error from slot1@node: no such file
	Code 13 Subcode 2
...
012 (012.000.000) 2026-11-21 04:0`
	for event, err := range eventlog.Events(strings.NewReader(log), time.Now()) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch detail := event.Detail.(type) {
		case eventlog.Submitted:
			fmt.Println(event.Job, "is in the queue of", detail.Host)
		case eventlog.Held:
			fmt.Println(event.Job, "waits for somebody:", detail.Reason)
		}
	}
	// Output:
	// 12.0 is in the queue of <192.0.2.1:9618>
	// 12.0 waits for somebody: Error from slot1@node: no such file
	// event log at byte 204: cut short by the end of the log: "012 (012.000.000) 2026-11-21 04:0"
}
