package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// inOrder returns a job whose tasks each append a line to the previous task's file; the tasks in fails fail before
// that.
func inOrder(dir string, tasks int, fails ...int) execution.Job {
	j := sh(1, dir, "")
	j.Ordered, j.Tasks = true, nil
	for i := 1; i <= tasks; i++ {
		t := shTask(i, fmt.Sprintf("cat f%d >f%d; echo %d >>f%d", i-1, i, i, i))
		t.Inputs, t.Outputs = []string{fmt.Sprintf("f%d", i-1)}, []string{fmt.Sprintf("f%d", i)}
		for _, f := range fails {
			if f == i {
				t.Argv = []string{"sh", "-c", "exit 3"}
			}
		}
		j.Tasks = append(j.Tasks, t)
	}
	return j
}

// TestOrderedJobs: a task of a job may read the outputs of earlier tasks, wherever the job runs; after a failed task
// the remaining tasks are returned without being started.
func TestOrderedJobs(t *testing.T) {
	t.Parallel()
	for name, blind := range map[string]bool{"beside the run": false, "where files travel": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tt := range []struct {
				job      execution.Job
				want     []string
				returned int
			}{
				{inOrder("", 4), []string{"1 done", "2 done", "3 done", "4 done"}, 0},
				{inOrder("", 4, 2), []string{"1 done", "2 failed"}, 1},
				{inOrder("", 3, 3), []string{"1 done", "2 done", "3 failed"}, 0},
			} {
				b := newBed(t, dispatch.Config{}, nil)
				if blind {
					b, _ = newBlindBed(t, dispatch.Config{})
				}
				data := filepath.Join(b.dir, executor.DataDir)
				if err := os.WriteFile(filepath.Join(data, "f0"), []byte("0\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				tt.job.Dir = b.dir
				b.d.Submit([]execution.Job{tt.job})
				await(t, "the job's end", func() bool {
					results, returned := b.sink.seen()
					return len(results) == len(tt.want) && len(returned) == tt.returned
				})
				results, returned := b.sink.seen()
				var got []string
				for _, r := range results {
					got = append(got, fmt.Sprintf("%d %s", r.Index, r.Status))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" || len(returned) > 0 && returned[0].Started {
					t.Errorf("results (-want +got):\n%s\nreturned: %v", diff, returned)
				}
				if tt.returned == 0 && len(tt.job.Tasks) == 4 {
					if text := read(t, data, "f4"); text != "0\n1\n2\n3\n4\n" {
						t.Errorf("f4 is %q", text)
					}
				}
				await(t, "the job to be forgotten", b.idle)
			}
		})
	}
}

// TestOrderedParcel: the same applies to an HTCondor job, which returns all files at its end.
func TestOrderedParcel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job  execution.Job
		want []execution.Status
		last string // last existing file
	}{
		{inOrder("", 3), []execution.Status{execution.Done, execution.Done, execution.Done}, "f3"},
		{inOrder("", 3, 2), []execution.Status{execution.Done, execution.Failed}, "f1"},
	} {
		p := newTrip(t)
		data := filepath.Join(p.run, executor.DataDir)
		if err := os.WriteFile(filepath.Join(data, "f0"), []byte("0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		tt.job.Run, tt.job.Seq, tt.job.Dir = 7, 3, p.run
		var got []execution.Status
		for _, r := range p.send(t.Context(), t, tt.job) {
			got = append(got, r.Status)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		read(t, data, tt.last)
	}
}

// TestWithdraw: queued jobs are returned, and jobs at a worker stay.
func TestWithdraw(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2), long(3), long(4), long(5), long(6)})
		a.take()
		s.d.Withdraw(1, []int64{1, 5, 7})
		s.returned(returnedJob{5, false, ""})
		s.d.Withdraw(2, []int64{6})
		a.done(1, 1)
		a.expect(wire.TypeAck)
		if got := a.take(); len(got) != 1 || got[0] != 6 {
			t.Errorf("assigned %v, want job 6, which stayed", got)
		}
		s.returned(returnedJob{5, false, ""})
	})
}
