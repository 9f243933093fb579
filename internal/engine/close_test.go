package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/corral-pilot/corral/pool"
)

// noSink is a run that keeps nothing.
type noSink struct{}

func (noSink) Assigned(string, []pool.Key) error { return errors.New("keeps nothing") }
func (noSink) Finished([]pool.Result) error      { return errors.New("keeps nothing") }
func (noSink) Returned([]pool.Key, bool, string) {}

// A dispatcher may be about to tell of a lost worker when it is closed.
func TestCloseWhileWorkersAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 100 {
			clusters := NewClusters(w.lg, w.db, pool.Config{Lease: time.Millisecond, Margin: time.Microsecond, Heartbeat: time.Microsecond})
			d := clusters.dispatcher(1)
			d.Attach(1, noSink{})
			stop := time.Now().Add(time.Duration(i) * 50 * time.Microsecond)
			for time.Now().Before(stop) {
				d.Expect(1, "lost", nil)
			}
			clusters.Close()
		}
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("closing the clusters hangs")
	}
}
