package admission

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// noSink is a run that discards everything.
type noSink struct{}

func (noSink) Assigned(string, []execution.Key) error            { return errors.New("keeps nothing") }
func (noSink) Finished([]execution.Result) error                 { return errors.New("keeps nothing") }
func (noSink) Returned([]execution.Key, bool, time.Time, string) {}

// A dispatcher that is being closed may be about to report a lost worker: both wait for the lock.
func TestCloseWhileWorkersAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := NewClusters(slog.New(slog.DiscardHandler), w.db, nil, dispatch.Config{Lease: time.Millisecond, Margin: time.Millisecond})
	d := clusters.dispatcher(1)
	d.Attach(1, noSink{})
	ended := make(chan struct{})
	clusters.mu.Lock()
	go func() {
		defer close(ended)
		clusters.Close()
	}()
	d.Expect(1, "lost", nil)
	<-time.After(100 * time.Millisecond) // enough for both to reach the lock; otherwise the test shows nothing
	clusters.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("closing the clusters hangs")
	}
}
