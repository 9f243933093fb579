package pilot

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := takeLease(dir, newHolder()); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, errLeased):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d took the lease, want 1", won.Load())
	}
	if err := takeLease(dir+"/none", newHolder()); err == nil || errors.Is(err, errLeased) {
		t.Errorf("takeLease in no directory = %v, want another error", err)
	}
}
