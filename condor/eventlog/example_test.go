package eventlog_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
)

func ExampleReader() {
	log := `000 (012.000.000) 2026-11-21 04:00:45.158 Job submitted from host: <192.0.2.1:9618>
...
012 (012.000.000) 2026-11-21 04:0
012 (012.000.000) 2026-11-21 04:00:49.453 Job was held.
	Error from slot1@node: no such file
	Code 13 Subcode 2
...
005 (012.000.000) 2026-11-21 04:0`
	reader := eventlog.NewReader(strings.NewReader(log), time.Now())
	for {
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return // the last record is incomplete
		}
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
	// event log at byte 88: cut short by the next record: "012 (012.000.000) 2026-11-21 04:0\n"
	// 12.0 waits for somebody: Error from slot1@node: no such file
}
