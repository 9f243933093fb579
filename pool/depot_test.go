package pool

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
)

// Parcels of one run are made and removed side by side; none takes another's folder away.
func TestParcelsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	job := execution.Job{Dir: t.TempDir(), Tasks: []execution.Task{{ID: "t"}}}
	var couriers sync.WaitGroup
	for range 4 {
		couriers.Go(func() {
			for range 300 {
				dir, err := spool(job)
				if err = errors.Join(err, Pack(dir, job)); err != nil {
					t.Error(err)
					return
				}
				unspool(dir)
			}
		})
	}
	couriers.Wait()
	if _, err := os.Stat(filepath.Join(job.Dir, SpoolDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// courierHello is that of a courier of worker 0.
func courierHello(instance string) *hello {
	return &hello{Version: Version, Role: RoleCourier, Tag: "tag", Token: testToken, ID: "tag/0", Instance: instance, Holder: "pilot", CPUs: 4}
}

// courier dials in as one of worker 0.
func (s *stage) courier(instance string) *actor {
	a := s.greet(courierHello(instance))
	a.expect(typeWelcome)
	return a
}

// However many files are carried, workers find places at the port; a courier too many comes again later.
func TestCouriersLeavePlacesToWorkers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for range maxCouriers - 1 {
			s.port.bulk <- struct{}{}
		}
		last := s.courier("first")
		if m := s.greet(courierHello("first")).expect(typeRefuse); m.Kind != corral.Unavailable {
			t.Errorf("refused as %s: %s", m.Kind, m.Reason)
		}
		s.enter("0", "first", nil)
		last.close()
		synctest.Wait()
		s.courier("first")
	})
}

// What a confused worker brings does not fill corrald's memory, nor its disk with files that nobody asked for.
func TestParcelOfMoreThanWasAskedFor(t *testing.T) {
	for name, files := range map[string]map[string]int64{
		"description": {ParcelResult: maxDescription + 1},
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
				w.expect(typeAssign)
				c := s.courier("first")
				c.send(&message{Type: typeDeliver, Keys: keys(7)})
				to := tar.NewWriter(bulkWriter{c.conn})
				for name, size := range files {
					if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size}); err != nil {
						t.Fatal(err)
					}
					if size == 1 {
						_, _ = to.Write([]byte("x"))
					}
				}
				_ = to.Flush()
				if m, err := c.recv(maxFrame); !errors.Is(err, io.EOF) {
					t.Errorf("answer is %+v, %v, want the end", m, err)
				}
			})
		})
	}
}

// An output is not published once its job is another worker's.
func TestOutputOfWhoLostTheJobIsNotPublished(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{{ID: "t", Attempt: 1, Outputs: []string{"a", "b"}}}}
	done := parcelResult{Tasks: []parcelTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}}}}
	if err := errors.Join(Pack(p.parcel, job), os.Mkdir(filepath.Join(p.parcel, ParcelOut), 0o700)); err != nil {
		t.Fatal(err)
	}
	for i, name := range job.Tasks[0].Outputs {
		done.Tasks[0].Files = append(done.Tasks[0].Files, parcelItem{Name: name, At: strconv.Itoa(i)})
		if err := os.WriteFile(filepath.Join(p.parcel, ParcelOut, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeJSON(filepath.Join(p.parcel, ParcelResult), done); err != nil {
		t.Fatal(err)
	}
	asked := 0
	_, trouble, err := unpack(p.parcel, job, func() bool { asked++; return asked < 2 })
	if err != nil || !errors.Is(trouble, errStale) {
		t.Errorf("trouble is %v, %v, want %v", trouble, err, errStale)
	}
	absent(t, p.run, dataDir, "b")
}

// A result is that of the worker that sends it, and has a reason that can be kept.
func TestResultsAreTheirSenders(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.enter("0", "first", nil)
		s.d.Submit([]execution.Job{long(7), long(8)})
		w.expect(typeAssign)
		r := result(1, 7)
		r.Worker = "somebody else"
		w.send(&message{Type: typeResults, Results: []report{r}})
		s.finished(1)
		if got, _ := s.sink.seen(); got[0].Worker != "tag/0" {
			t.Errorf("the worker is %q", got[0].Worker)
		}
		w.expect(typeAck)
		r = result(2, 8)
		r.Reason = strings.Repeat("x", 1<<20)
		w.send(&message{Type: typeResults, Results: []report{r}})
		_ = w.nc.SetReadDeadline(time.Now().Add(time.Minute))
		if m, err := w.recv(maxFrame); !errors.Is(err, io.EOF) {
			t.Errorf("answer is %+v, %v, want the end", m, err)
		}
		synctest.Wait()
	})
}

// Nobody is at a run's files any more once it is detached: they may go.
func TestDetachEndsTheCarryingOfFiles(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		w := s.enter("0", "first", nil)
		job := sh(7, runDir(t), "x")
		s.d.Submit([]execution.Job{job})
		w.expect(typeAssign)
		c := s.courier("first")
		c.send(&message{Type: typeDeliver, Keys: keys(7)})
		to := tar.NewWriter(bulkWriter{c.conn})
		if err := to.WriteHeader(&tar.Header{Name: "out/0", Mode: 0o600, Size: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := os.Stat(filepath.Join(job.Dir, SpoolDir)); err != nil {
			t.Fatal(err)
		}
		s.d.Detach(1)
		absent(t, job.Dir, SpoolDir)
	})
}

// Who must leave does not wait for a large folder to be packed.
func TestPackingStops(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	tree := filepath.Join(p.run, dataDir, "tree")
	if err := errors.Join(os.Mkdir(tree, 0o700), os.WriteFile(tree+"/file", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := pack(ctx, p.parcel, execution.Job{Dir: p.run, Tasks: []execution.Task{{ID: "t", Inputs: []string{"tree"}}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("packing: %v, want %v", err, context.Canceled)
	}
}
