package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutlastingEndsAWhileAfterItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, interrupt := context.WithCancel(t.Context())
		ctx, cancel := outlasting(parent)
		defer cancel()
		interrupt()
		began := time.Now()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it has ended with its parent")
		}
		<-ctx.Done()
		if d := time.Since(began); d != creationGrace {
			t.Errorf("it ended %s after its parent, not %s", d, creationGrace)
		}
	})
}
