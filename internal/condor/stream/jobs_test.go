package stream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

func TestJobOf(t *testing.T) {
	t.Parallel()
	ad := func(status int, more classad.Ad) classad.Ad {
		a := classad.Ad{
			"ClusterId": int64(7), "ProcId": int64(1), "JobStatus": int64(status), "JobPrio": int64(60),
			"EnteredCurrentStatus": now.Unix(), numberAttribute: int64(3), glideinAttribute: "g/0", cpusAttribute: int64(4),
		}
		for name, value := range more {
			a[name] = value
		}
		return a
	}
	want := func(s State, cpus int) WorkerJob {
		return WorkerJob{
			ID: eventlog.JobID{Cluster: 7, Proc: 1}, Number: 3, Glidein: "g/0", State: s, CPUs: cpus, Priority: 60, Since: now,
		}
	}
	for name, tt := range map[string]struct {
		ad   classad.Ad
		want WorkerJob
	}{
		"waits": {ad(1, nil), want(Idle, 4)},
		"runs":  {ad(2, classad.Ad{"CpusProvisioned": int64(1)}), want(Running, 1)},
		"has more than its cpus": {ad(2, classad.Ad{"MemoryProvisioned": int64(128), "GPUsProvisioned": int64(2)}), func() WorkerJob {
			j := want(Running, 4)
			j.MemoryMiB, j.GPUs = 128, 2
			return j
		}()},
		"is removed":        {ad(3, nil), want(Leaving, 4)},
		"sends its files":   {ad(6, nil), want(Running, 4)},
		"the user holds it": {ad(5, classad.Ad{"HoldReasonCode": int64(1)}), want(Parked, 4)},
		"HTCondor holds it": {ad(5, classad.Ad{"HoldReasonCode": int64(34)}), want(Held, 4)},
	} {
		if diff := cmp.Diff(tt.want, jobOf(tt.ad)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := jobOf(classad.Ad{}); got.State != Running || got.Number != 0 {
		t.Errorf("an ad that says nothing: %+v", got)
	}
}

// Attributes that are specific to one worker job are only in its ad, so that all worker jobs can share a submission.
func TestDescribe(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	_, err := describe("NAME", "/stream", 8, []Order{
		{Job: WorkerJob{Glidein: "g/0", CPUs: 4, Priority: 60}, Need: corral.Resources{CPUs: 1, MemoryMiB: 100}},
		{Job: WorkerJob{Glidein: "h/1", CPUs: 2}, Need: corral.Resources{GPUs: 1, DiskMiB: 5}},
	}).WriteTo(&text)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"executable = $$(CorralPilot)", "transfer_input_files = stream.json", "stream$(Blank)8", "stream$(Blank)9", "8.err", "g/0", "h/1",
		`My.CorralStream = "NAME"`, "My.RequestCpus = min({CorralStreamCpus, TARGET.Cpus})",
		"max({CorralStreamNeedGPUs$(Comma)$(Blank)TARGET.GPUs$(Blank)", "My.RunnerMemory = 24", "queue",
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is not in\n%s", part, &text)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]corral.ClusterID{
		Tag(12): 12, "corral-stream-": 0, "corral-stream-0": 0, "corral-stream-012": 0, "corral-stream--1": 0,
		"corral-stream-1x": 0, "corral-pilot-abc": 0, "": 0, "corral-stream-99999999999999999999": 0,
	} {
		if id, ours := ClusterOf(tag); ours != (want != 0) || ours && id != want {
			t.Errorf("%q is of cluster %d, %v, want %d", tag, id, ours, want)
		}
	}
}

// Numbers are on disk before they are used, and are never reused.
func TestNumbersAreReserved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "note.json")
	n := note{path: path}
	if err := n.recall(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 4, 7} {
		if first, err := n.reserve(3); err != nil || first != want {
			t.Errorf("the first of three is %d, %v, want %d", first, err, want)
		}
	}
	again := note{path: path}
	if err := again.recall(); err != nil || again != n {
		t.Errorf("the next corrald knows %+v, %v, want %+v", again, err, n)
	}
	n.path = filepath.Join(path, "none") // no file can be written there
	if _, err := n.reserve(1); err == nil || n.Last != 9 {
		t.Errorf("numbers that could not be noted: %v, the last is %d", err, n.Last)
	}
}

// A note that cannot be read may name jobs in the schedd: it is kept, and the error is reported.
func TestDamagedNoteIsKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"name":"N"}`, `{"token":"T"}`, strings.Repeat(" ", 5000)} {
		path := filepath.Join(t.TempDir(), "note.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := note{path: path}
		if err := n.recall(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.10q: %v", text, err)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%.10q has become %.10q, %v", text, kept, err)
		}
	}
}

// The roll reports the priority of the most urgent run, and since when there have been no runs.
func TestRoll(t *testing.T) {
	t.Parallel()
	r := newRoll(now)
	r.attach(1)
	r.attach(2)
	r.rank(1, 5)
	r.rank(2, 9)
	r.rank(2, 3)
	r.rank(3, 99) // this run is not attached
	var w World
	if r.fill(&w); w.Runs != 2 || w.Priority != 9 {
		t.Errorf("%d runs, priority %d", w.Runs, w.Priority)
	}
	later := now.Add(time.Hour)
	r.detach(2, later)
	r.detach(1, later)
	r.detach(1, later.Add(1))
	if w = (World{}); true {
		r.fill(&w)
	}
	if w.Runs != 0 || !w.AloneFrom.Equal(later) || w.Priority != 0 {
		t.Errorf("%+v", w)
	}
}
