package eventlog_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
)

// In this log a crash has truncated the second record, and the last one is still being written.
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

// A program keeps its place in a log that a schedd is writing, and continues there after a restart.
func ExampleFile_New() {
	dir, err := os.MkdirTemp("", "eventlog")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log := eventlog.File{Path: filepath.Join(dir, "jobs.log")}
	text := ""
	for _, record := range []string{
		"000 (012.000.000) 2026-11-21 04:00:45 Job submitted from host: <192.0.2.1:9618>\n...\n",
		"005 (012.000.000) 2026-11-21 04:03:07 Job terminated.\n\t(1) Normal termination (return value 3)\n...\n",
	} {
		text += record
		if err := os.WriteFile(log.Path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		for event, err := range log.New(time.Now()) {
			if err != nil {
				fmt.Println(err)
				continue
			}
			end, ended := event.Detail.(eventlog.Terminated)
			fmt.Println("job", event.Job, "ended:", ended, "status:", end.ReturnValue, "read to byte:", log.Place.Offset)
		}
	}
	// Output:
	// job 12.0 ended: false status: 0 read to byte: 84
	// job 12.0 ended: true status: 3 read to byte: 183
}
