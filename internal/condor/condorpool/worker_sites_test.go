//go:build sites

package condorpool

import (
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
)

// TestBusyWorker runs a real worker with a job. Its CPUs are either one slot each or one divided slot.
func TestBusyWorker(t *testing.T) {
	t.Parallel()
	for name, static := range map[string]bool{"static": true, "partitionable": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.ready("mine")
			j := w.attempt(c, 1, 2)
			w.glidein(c, j, w.mint(c, j), func(g *condor.GlideinConfig) { g.Static = static })
			is := func(cpus, free, running int) bool {
				workers := w.keepers.Workers(c.ID)
				return len(workers) == 1 && workers[0].CPUs == cpus && workers[0].CPUsFree == free && workers[0].RunningTasks == running
			}
			w.eventually("two free cpus", func() bool { return is(2, 2, 0) })
			_, err := w.tools(c).Submit(t.Context(), condor.Submit{
				Executable: "/bin/sleep", Request: condor.Request{Cpus: 1}, Transfer: condor.Transfer{When: "YES"},
				Procs: []condor.Proc{{Arguments: []string{"120"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			w.eventually("one busy cpu", func() bool { return is(2, 1, 1) })
			// The attempt is over, whatever its slots still report.
			w.write(func(tx *store.Tx) error { return end(tx, j.ID) })
			w.eventually("no worker", func() bool { return len(w.keepers.Workers(c.ID)) == 0 })
		})
	}
}

// TestKilledWorkerIsForgotten kills a worker with all processes that could report its end. The collector lists the
// worker for some time and then removes it from its list.
func TestKilledWorkerIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	j := w.attempt(c, 1, 2)
	w.glidein(c, j, w.mint(c, j), nil)
	w.eventually("a worker", func() bool { return len(w.keepers.Workers(c.ID)) == 1 })
	for len(daemons(w.dir+"/host-")) > 0 { // the master would restart a startd
		for _, pid := range daemons(w.dir + "/host-") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}
	named := func(within time.Duration) int {
		ads, err := w.tools(c).Query(t.Context(), "condor_status", []string{"-constraint", slotsOf(c.Name, within)}, slotAttributes)
		if err != nil {
			t.Fatal(err)
		}
		return len(ads)
	}
	w.eventually("an old word", func() bool { return named(2*time.Second) == 0 })
	w.eventually("no word", func() bool { return named(time.Hour) == 0 })
}
