package engine

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A planned start is punctual: the loop wakes for it although nothing happens at the site.
func TestPlannedStartIsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	start := time.Now().Add(7 * time.Second) // by then the site is no longer busy
	var g corral.Glidein
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
			Shape:     corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 1, Walltime: corral.Seconds(time.Minute)},
			NotBefore: start})
		return err
	})
	w.attemptIs(g.ID, corral.JobRunning)
	created := w.glideinNow(g.ID).Attempts[0].CreatedAt
	if late := created.Sub(start); late < -time.Millisecond || late > pollNothing*3/4 { // a later time would mean that the loop had slept
		t.Errorf("the attempt was asked for %s after its time", late)
	}
}
