package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral/internal/kit/retry"
)

func TestPauseEndsInTimeOrWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !retry.For(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("a pause of a minute was over after %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if retry.For(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("a pause whose context ended after a second was over after %v", time.Since(began))
		}
	})
}
