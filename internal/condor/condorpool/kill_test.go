//go:build sites

package condorpool

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// TestKilledDaemonsComeBack kills each daemon of a pool in turn, as the kernel may when memory runs out. The queue is
// kept, the worker reappears, jobs run, and the cluster reports that it is healthy.
func TestKilledDaemonsComeBack(t *testing.T) {
	for _, program := range []string{"condor_master", "condor_schedd", "condor_collector", "condor_negotiator", "condor_shared_port"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.ready("mine")
			j := w.attempt(c, 1, 2)
			secret := w.mint(c, j)
			w.glidein(c, j, secret, nil)
			w.eventually("a worker", func() bool { return len(w.keepers.Workers(c.ID)) == 1 })

			from := time.Now()
			killed := w.kill(c, program)[0]
			w.eventually(program+" again", func() bool {
				again := w.daemon(c, program)
				return again != 0 && again != killed
			})
			t.Logf("%s again after %v", program, time.Since(from).Round(time.Millisecond))
			var job int
			w.eventually("submission", func() bool {
				var err error
				job, err = w.trySubmit(c)
				return err == nil
			})
			t.Logf("a job is taken after %v", time.Since(from).Round(time.Millisecond))
			w.eventually("end of the job", func() bool { return w.gone(c, job) })
			t.Logf("and done after %v", time.Since(from).Round(time.Millisecond))
			w.eventually("the worker", func() bool {
				workers := w.keepers.Workers(c.ID)
				return len(workers) == 1 && workers[0].Connected
			})
			w.eventually("health", func() bool { return w.cluster(c.ID).Reason == "" })
			t.Logf("and all well after %v", time.Since(from).Round(time.Millisecond))
			if c := w.cluster(c.ID); c.State != corral.ClusterReady {
				t.Errorf("cluster is %s: %s", c.State, c.Reason)
			}
		})
	}
}
