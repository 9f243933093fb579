package schedd

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/condor"
)

func outboxOf(n int64) *outbox {
	o := &outbox{size: submitSize, patience: time.Minute}
	for seq := range n {
		o.add(&job{Job: task(seq + 1)})
	}
	return o
}

func seqs(jobs []*job) (seqs []int64) {
	for _, j := range jobs {
		seqs = append(seqs, j.Seq)
	}
	return seqs
}

// TestOneBadJobIsFound submits eight jobs to a schedd that refuses every submission that contains job 3.
func TestOneBadJobIsFound(t *testing.T) {
	o := outboxOf(8)
	refusal := errors.New("we take no threes")
	taken := map[int64]bool{}
	now := noon
	for len(o.jobs) > 0 {
		jobs := o.next()
		if !slices.Contains(seqs(jobs), 3) {
			o.accepted(jobs)
			for _, seq := range seqs(jobs) {
				taken[seq] = true
			}
			continue
		}
		switch o.refused(jobs, refusal, now) {
		case later:
			now = now.Add(time.Minute)
		case giveUp:
			if !now.Equal(noon.Add(time.Minute)) || jobs[0].Seq != 3 {
				t.Errorf("job %d was given up after %v", jobs[0].Seq, now.Sub(noon))
			}
		}
	}
	if len(taken) != 7 {
		t.Errorf("taken: %v, want all but job 3", taken)
	}
}

func TestAFullScheddIsWaitedFor(t *testing.T) {
	o := outboxOf(1)
	full := errors.New("Number of submitted jobs would exceed MAX_JOBS_SUBMITTED")
	for minute := range 100 {
		if got := o.refused(o.next(), full, noon.Add(time.Duration(minute)*time.Minute)); got != later {
			t.Fatalf("refused() after %d minutes = %v, want that it is submitted later", minute, got)
		}
	}
}

func TestUnquotableJobsFailAtOnce(t *testing.T) {
	o := outboxOf(1)
	if got := o.refused(o.next(), condor.ErrUnquotable, noon); got != giveUp || len(o.jobs) > 0 {
		t.Errorf("refused() = %v, waiting %v", got, o.jobs)
	}
}

func TestPostponedJobs(t *testing.T) {
	o := outboxOf(3)
	jobs := o.next()
	o.putBack(jobs[1:])
	if !o.postpone(jobs[0], noon) || !cmp.Equal(seqs(o.jobs), []int64{2, 3, 1}) {
		t.Errorf("waiting %v, want job 1 behind the others", seqs(o.jobs))
	}
	if o.postpone(jobs[0], noon.Add(o.patience)) {
		t.Error("a job waits for longer than there is patience")
	}
}

// TestSilenceIsLoggedOnce simulates a schedd that is down for days, as when its cluster is STOPPED: a message is logged
// once, and another when the schedd answers again.
func TestSilenceIsLoggedOnce(t *testing.T) {
	var said bytes.Buffer
	tr := &tracker{lg: slog.New(slog.NewTextHandler(&said, nil))}
	silence := errors.New("failed to connect")
	for range 5 {
		tr.answered(silence)
	}
	tr.answered(nil)
	tr.answered(nil)
	tr.answered(silence)
	away, back := strings.Count(said.String(), "does not answer"), strings.Count(said.String(), "answers again")
	if away != 2 || back != 1 {
		t.Errorf("away was reported %d times and back %d times, want 2 and 1:\n%s", away, back, said.String())
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	var pauses []time.Duration
	for range 8 {
		b.wait(silent, noon)
		pauses = append(pauses, b.until.Sub(noon))
	}
	const ms = time.Millisecond
	want := []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 15000 * ms, 15000 * ms}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if !b.answered() || b.answered() {
		t.Error("the schedd did not come back once")
	}
	if b.wait(silent, noon); b.pause != retryMin {
		t.Errorf("the first pause after an answer is %v", b.pause)
	}
}

var update = flag.Bool("update", false, "rewrite testdata")

// TestDescription checks the input for condor_submit for two jobs.
func TestDescription(t *testing.T) {
	first, second := task(1), task(2)
	first.CPUs, first.MemoryMiB, first.Priority, first.Tasks[0].Estimate = 2, 100, 12.6, 90*time.Second
	d := description{run: 7, name: "NAME", log: "/q/7/log", lease: 2 * time.Minute}
	var got bytes.Buffer
	if _, err := d.of([]*job{{Job: first, key: "k1"}, {Job: second, key: "k2"}}).WriteTo(&got); err != nil {
		t.Fatal(err)
	}
	const name = "testdata/description.sub"
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}
