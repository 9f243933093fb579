package dispatch

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// records is a sink of one run.
type records struct{ finished, returned int }

func (r *records) Assigned(string, []execution.Key) error    { return nil }
func (r *records) Finished(results []execution.Result) error { r.finished += len(results); return nil }
func (r *records) Returned(jobs []execution.Key, _ bool, _ time.Time, _ string) {
	r.returned += len(jobs)
}

// connect makes d serve an instance of a one-CPU worker, which reports the given held jobs.
func connect(t *testing.T, d *Dispatcher, held *wire.Message) *wire.Conn {
	ours, theirs := net.Pipe()
	far := wire.NewConn(theirs)
	go func() {
		defer far.Close()
		d.ServeWorker(far, "i", corral.Worker{ID: "tag/0", CPUs: 1, MemoryMiB: 1000, EndsAt: time.Now().Add(time.Hour)}, 0)
	}()
	c := wire.NewConn(ours)
	t.Cleanup(c.Close)
	held.Type = wire.TypeHeld
	c.Send(held)
	return c
}

func expect(t *testing.T, c *wire.Conn, kind string) {
	t.Helper()
	if m, err := c.Recv(wire.MaxFrame); err != nil || m.Type != kind {
		t.Fatalf("got %+v, %v, want %s", m, err, kind)
	}
}

// If corrald itself was suspended and did not answer workers, that time does not count against the workers: they return
// with their results.
func TestStoppedDispatcherLosesNoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sink := New(slog.New(slog.DiscardHandler), Config{}), &records{}
		defer d.Close()
		d.Attach(1, sink)
		c := connect(t, d, &wire.Message{})
		d.Submit([]execution.Job{{Run: 1, Seq: 1, CPUs: 1, Tasks: []execution.Task{{ID: "t", Attempt: 1, Estimate: time.Minute}}}})
		expect(t, c, wire.TypeAssign)
		c.Close()
		synctest.Wait()
		d.step(time.Now().Add(time.Minute))
		synctest.Wait()
		if sink.returned > 0 {
			t.Error("the job was given back")
		}
		c = connect(t, d, &wire.Message{Results: []wire.Report{{N: 1, Result: execution.Result{
			Key: execution.Key{Run: 1, Seq: 1}, Attempt: 1, Status: execution.Done,
		}}}})
		expect(t, c, wire.TypeAck)
		if sink.finished != 1 {
			t.Errorf("%d results are recorded, want one", sink.finished)
		}
	})
}
