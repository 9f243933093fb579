//go:build sites

package condor

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
)

// TestMemoryThatNobodyAskedFor runs the same job with and without a memory request: without one, HTCondor assumes the
// size of the program's file, which every process exceeds.
func TestMemoryThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	c := glidein(t, p, "roomy")
	c.Cpus, c.MemoryMiB = 3, 3000
	start(t, p, c, mint(t, p, time.Hour).Secret())
	const takes = "x=$(head -c 150000000 /dev/zero | tr '\\0' x); sleep " // MemoryUsage is measured every 5 s
	silent, small, greedy := sh(p, "silent", takes+"12"), sh(p, "small", "sleep 12"), sh(p, "greedy", takes+"300")
	silent.Request.MemoryMiB, small.Request.MemoryMiB, greedy.Request.MemoryMiB = 0, 1, 20
	names := map[int]string{}
	for _, job := range []Submit{silent, small, greedy} {
		job.Transfer.When = "YES"
		cluster, err := p.Tools().Submit(soon(t), job)
		if err != nil {
			t.Fatal(err)
		}
		names[cluster] = job.BatchName
	}
	log, ends := eventlog.File{Path: filepath.Join(p.config.Dir, "jobs.log")}, map[string]string{}
	eventually(t, "the ends of all jobs", func() (bool, error) {
		for event, err := range log.New(time.Now()) {
			if err != nil {
				return false, err
			}
			switch event.Detail.(type) {
			case eventlog.Held, eventlog.Terminated:
				ends[names[event.Job.Cluster]] = describe(event)
			}
		}
		return len(ends) == len(names), nil
	})
	if ends["silent"] != "returned 0" || ends["small"] != "returned 0" || !strings.Contains(ends["greedy"], TookMemory) {
		t.Errorf("the jobs ended so: %v", ends)
	}
}
