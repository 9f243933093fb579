package embedded_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// Parcels of one run are created and removed concurrently; the removal of one parcel does not affect the folders of
// others.
func TestParcelsDoNotRemoveEachOther(t *testing.T) {
	t.Parallel()
	job := execution.Job{Dir: t.TempDir(), Tasks: []execution.Task{{ID: "t"}}}
	var couriers sync.WaitGroup
	for range 4 {
		couriers.Go(func() {
			for range 300 {
				dir, err := transfer.Spool(job)
				if err = errors.Join(err, transfer.Pack(t.Context(), dir, job)); err != nil {
					t.Error(err)
					return
				}
				transfer.Unspool(dir)
			}
		})
	}
	couriers.Wait()
	if _, err := os.Stat(filepath.Join(job.Dir, transfer.SpoolDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// courierHello is the hello of a courier of worker 0.
func courierHello(instance string) *wire.Hello {
	return &wire.Hello{Version: wire.Version, Role: wire.RoleCourier, Tag: "tag", Token: testToken, ID: "tag/0", Instance: instance, Holder: "pilot", CPUs: 4}
}

// courier dials in as a courier of worker 0.
func (s *stage) courier(instance string) *actor {
	a := s.greet(courierHello(instance))
	a.expect(wire.TypeWelcome)
	return a
}

// Couriers leave places for workers at the port, regardless of the number of files in transit; a surplus courier is
// asked to retry later.
func TestCouriersLeavePlacesForWorkers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const most = 1024
		for range most - 1 {
			s.courier("first")
		}
		last := s.courier("first")
		if m := s.greet(courierHello("first")).expect(wire.TypeRefuse); m.Kind != corral.Unavailable {
			t.Errorf("refused as %s: %s", m.Kind, m.Reason)
		}
		s.enter("0", "first", nil)
		last.Close()
		synctest.Wait()
		s.courier("first")
	})
}

// A parcel of a faulty worker cannot exhaust corrald's memory, nor fill its disk with files that were not requested.
func TestOversizedParcel(t *testing.T) {
	for name, files := range map[string]map[string]int64{
		"description": {transfer.ResultFile: wire.MaxDescription + 1},
		"files":       {"out/0": 1, "out/1": 1, "out/2": 1, "out/3": 1, "out/4": 1, "out/5": 1},
		"folders":     {"out/a/b": 1},
		"ways out":    {"../out": 1},
		"other roots": {"/out": 1},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				w := s.enter("0", "first", nil)
				job := sh(7, runDir(t), "x")
				job.Tasks[0].Outputs = []string{"a"}
				s.d.Submit([]execution.Job{job})
				w.expect(wire.TypeAssign)
				c := s.courier("first")
				c.Send(&wire.Message{Type: wire.TypeDeliver, Keys: keys(7)})
				to := tar.NewWriter(wire.BulkWriter{Conn: c.Conn})
				for name, size := range files {
					// The dispatcher may already have closed the connection in the middle of the transfer.
					_ = to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size})
					if size == 1 {
						_, _ = to.Write([]byte("x"))
					}
				}
				_ = to.Flush()
				if m, err := c.Recv(wire.MaxFrame); err == nil {
					t.Errorf("answer is %+v, want the end", m)
				}
			})
		})
	}
}

// A result is attributed to the worker that sends it, and its reason is shortened to a length that can be stored.
func TestResultsAreAttributedToTheirSender(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.enter("0", "first", nil)
		s.d.Submit([]execution.Job{long(7), long(8)})
		w.expect(wire.TypeAssign)
		r := result(1, 7)
		r.Worker = "somebody else"
		w.Send(&wire.Message{Type: wire.TypeResults, Results: []wire.Report{r}})
		s.finished(1)
		if got, _ := s.sink.seen(); got[0].Worker != "tag/0" {
			t.Errorf("the worker is %q", got[0].Worker)
		}
		w.expect(wire.TypeAck)
		r = result(2, 8)
		r.Reason = strings.Repeat("x", 1<<20)
		w.Send(&wire.Message{Type: wire.TypeResults, Results: []wire.Report{r}})
		_ = w.Net.SetReadDeadline(time.Now().Add(time.Minute))
		if m, err := w.Recv(wire.MaxFrame); !errors.Is(err, io.EOF) {
			t.Errorf("answer is %+v, %v, want the end", m, err)
		}
		synctest.Wait()
	})
}

// Once a run is detached, no courier uses its files any more: they may be deleted.
func TestDetachEndsFileTransfers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.enter("0", "first", nil)
		job := sh(7, runDir(t), "x")
		s.d.Submit([]execution.Job{job})
		w.expect(wire.TypeAssign)
		c := s.courier("first")
		c.Send(&wire.Message{Type: wire.TypeDeliver, Keys: keys(7)})
		to := tar.NewWriter(wire.BulkWriter{Conn: c.Conn})
		text := fmt.Sprintf(`{"tasks": [{"result": {"index": %d, "attempt": 1, "status": "done"}, "files": [{"name": "stdout", "at": "0"}]}]}`, job.Tasks[0].Index)
		described := to.WriteHeader(&tar.Header{Name: transfer.ResultFile, Mode: 0o600, Size: int64(len(text))})
		_, written := to.Write([]byte(text))
		begun := to.WriteHeader(&tar.Header{Name: "out/0", Mode: 0o600, Size: 1 << 30})
		if err := errors.Join(described, written, begun); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		attempt := filepath.Join(job.Dir, executor.TasksDir, job.Tasks[0].ID+".1")
		if _, err := os.Stat(filepath.Join(attempt, "stdout")); err != nil {
			t.Fatal(err)
		}
		s.d.Detach(1)
		if err := os.RemoveAll(attempt); err != nil {
			t.Fatal(err)
		}
		_, _ = to.Write(make([]byte, 1<<10))
		synctest.Wait()
		absent(t, job.Dir, executor.TasksDir+"/"+job.Tasks[0].ID+".1")
	})
}
