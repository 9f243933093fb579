package local

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call that the file system never answers is abandoned when its caller no longer waits; a call that ends in time
// returns its result.
func TestStuckCallIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		err := unlessStuck(ctx, func() error { <-answer; return nil })
		if took := time.Since(begin); !errors.Is(err, errStuck) || took != time.Minute+stuckAfter {
			t.Errorf("%v after %s", err, took)
		}
		close(answer) // or the goroutine would be left behind
		killed := errors.New("killed")
		if err := unlessStuck(ctx, func() error { return killed }); !errors.Is(err, killed) {
			t.Errorf("%v, want what it returned", err)
		}
	})
}
