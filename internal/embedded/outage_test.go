package embedded_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// A worker whose connection was cut is expected to return, although its lease is over and it is no longer registered;
// the worker is recognised when it returns, and forgotten when its attempt ends.
func TestDisconnectedWorkerIsExpected(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{Lease: 400 * time.Millisecond, Margin: 100 * time.Millisecond}, nil)
	expected := func() (w corral.Worker, n int) {
		all := dispatch.Expected(b.d)
		if len(all) == 0 {
			return w, 0
		}
		return all[0], len(all)
	}
	await(t, "the worker", func() bool { w, n := expected(); return n == 1 && w.Connected })
	before := time.Now()
	mend := b.cut(t)
	await(t, "the worker to be given up", func() bool { return len(b.d.Workers()) == 0 })
	w, n := expected()
	if n != 1 || w.Connected || w.SeenAt.After(time.Now()) || w.SeenAt.Before(before.Add(-time.Minute)) {
		t.Errorf("%d workers are expected, %+v; it was cut off at %s", n, w, before)
	}
	mend()
	await(t, "the worker's return", func() bool { w, n := expected(); return n == 1 && w.Connected })

	b.cut(t)
	await(t, "the worker to be given up again", func() bool { return len(b.d.Workers()) == 0 })
	b.d.Ended("tag")
	if w, n := expected(); n != 0 {
		t.Errorf("its attempt has ended, and %+v is expected", w)
	}
}
