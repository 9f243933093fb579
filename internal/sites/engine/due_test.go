package engine

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A planned start is not late: the loop wakes for it, though nothing happens at the site.
func TestPlannedStartIsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	start := time.Now().Add(7 * time.Second) // the site is not busy any more then
	var g corral.Glidein
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1, Hosts: 1, CPUs: 1, MemoryMiB: 1,
			Walltime: corral.Seconds(time.Minute), NotBefore: start})
		return err
	})
	w.attemptIs(g.ID, corral.JobRunning)
	created := w.glideinNow(g.ID).Attempts[0].CreatedAt
	if late := created.Sub(start); late < -time.Millisecond || late > pollNothing*3/4 { // else the loop would have slept
		t.Errorf("the attempt was asked for %s after its time", late)
	}
}
