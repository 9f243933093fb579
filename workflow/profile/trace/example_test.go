package trace_test

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A shell starts a sort, and waits for it: the memory peaks of both count, because they were alive at the same time.
func ExampleRead() {
	const line = `{"corral_trace":1,"transformation":"sort","id":"7","mode":"processes","argv":["sh","-c","sort a"],` +
		`"started_at":"2026-03-01T08:00:00Z","ended_at":"2026-03-01T08:00:10Z","exit":0,"processes":[` +
		`{"pid":11,"parent":0,"start_ns":0,"end_ns":10000000000,"execs":1,"threads":1,"exit":0,"user_cpu_ns":0,` +
		`"sys_cpu_ns":0,"peak_bytes":1000000,"virtual_bytes":0,"read_bytes":500,"written_bytes":0},` +
		`{"pid":12,"parent":11,"start_ns":1000000000,"end_ns":9000000000,"execs":1,"threads":1,"exit":0,` +
		`"user_cpu_ns":4000000000,"sys_cpu_ns":1000000000,"peak_bytes":40000000,"virtual_bytes":0,` +
		`"read_bytes":30000,"written_bytes":30000}],"overhead":{"stops":0,"cpu_ns":0,"by":"none"}}` + "\n"
	err := trace.Read(strings.NewReader(line), "sort.trace", func(t *trace.Trace) error {
		bytes := t.Bytes()
		fmt.Println(t.Transformation, t.Runtime(), "cpu", t.CPU(), "utilization", t.Utilization())
		fmt.Println("peak", t.Peak(), "read", bytes.Read, "written", bytes.Written)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// sort 10s cpu 5s utilization 0.5
	// peak 41000000 read 30500 written 30000
}
