package stream

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// testKeeper returns a keeper whose HTCondor consists of these programs, as shell scripts.
func testKeeper(t *testing.T, programs map[string]string) *keeper {
	t.Helper()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "bin"), 0o755)
	for name, script := range programs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	n := note{path: filepath.Join(dir, "note.json")}
	if err = errors.Join(err, n.recall()); err != nil {
		t.Fatal(err)
	}
	lg := slog.New(slog.DiscardHandler)
	d := dispatch.New(lg, dispatch.Config{})
	t.Cleanup(d.Close)
	me := condor.Account{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	return &keeper{
		lg: lg, cfg: Config{Cluster: 1, Dir: dir}, note: n, dispatcher: d, roll: newRoll(now), fresh: map[int64]bool{},
		client: schedd.Client{
			Tools:     condor.Tools{Release: dir, Config: filepath.Join(dir, "config"), As: me},
			Attribute: jobfiles.StreamAttribute,
		},
	}
}

// Several worker jobs that vanish together have one cause and count as one failure.
func TestWorkerJobsThatVanishTogether(t *testing.T) {
	t.Parallel()
	k := testKeeper(t, nil)
	k.fresh = map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true}
	k.missed(map[int64]bool{8: true}, now)
	if k.failures != 1 || !k.restTill.Equal(now.Add(Rest(1))) || len(k.fresh) != 1 {
		t.Errorf("after seven at one look: %d failures, rest till %v, %v are left", k.failures, k.restTill, k.fresh)
	}
	k.missed(map[int64]bool{8: true}, now.Add(time.Second))
	k.missed(nil, now.Add(time.Minute))
	if k.failures != 2 || !k.restTill.Equal(now.Add(time.Minute+Rest(2))) {
		t.Errorf("after another: %d failures, rest till %v", k.failures, k.restTill)
	}
}

// The worker jobs of a submission without an answer do not count as failed unless the next query finds them.
func TestSubmissionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	three := []Order{{Job: WorkerJob{Glidein: "g/0", CPUs: 1}}, {Job: WorkerJob{Glidein: "g/1", CPUs: 1}}, {Job: WorkerJob{Glidein: "g/2", CPUs: 1}}}
	k := testKeeper(t, map[string]string{"condor_submit": "kill -9 $$"})
	if err := k.submit(t.Context(), three); err == nil {
		t.Fatal("a submission was answered")
	}
	k.missed(map[int64]bool{2: true}, now)
	if k.failures != 0 || len(k.fresh) != 1 || !k.fresh[2] {
		t.Errorf("one of three is there: %d failures, %v are to dial in", k.failures, k.fresh)
	}
	k.missed(nil, now)
	if k.failures != 1 {
		t.Errorf("it has gone: %d failures", k.failures)
	}
}

// Worker jobs that HTCondor holds before they have connected would be held again at once, so they count as one
// failure. A job that has worked was held because of its tasks.
func TestWorkerJobsThatAreHeld(t *testing.T) {
	t.Parallel()
	held := func(number int64) Order {
		return Order{Deed: Remove, Job: in(Held, number, "a", 1, 0), Why: "HTCondor holds it"}
	}
	for name, tt := range map[string]struct {
		fresh map[int64]bool
		want  int
	}{
		"two early": {map[int64]bool{1: true, 2: true}, 1},
		"two late":  {map[int64]bool{}, 0},
	} {
		k := testKeeper(t, map[string]string{"condor_rm": "exit 0"})
		k.fresh = tt.fresh
		if err := k.carryOut(t.Context(), []Order{held(1), held(2)}); err != nil {
			t.Fatal(err)
		}
		if k.failures != tt.want || k.restTill.IsZero() != (tt.want == 0) || len(k.fresh) > 0 {
			t.Errorf("%s: %d failures, rest till %v, %v are to dial in", name, k.failures, k.restTill, k.fresh)
		}
	}
}

// A failed query does not count as a query: jobs in the queue from before a restart are found when HTCondor answers.
func TestLooksUntilThereIsAnAnswer(t *testing.T) {
	t.Parallel()
	k := testKeeper(t, map[string]string{"condor_q": "kill -9 $$"})
	k.note.Last = 1
	k.cfg.Glideins = func() []corral.Worker { return nil }
	k.step(t.Context(), now)
	if !k.due(now.Add(time.Hour), k.world(now)) {
		t.Error("HTCondor is not asked again")
	}
}

// While a keeper has nothing to maintain, it waits for a change.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(k *keeper)
		want   bool
	}{
		"a stream that is new":               {func(*keeper) {}, true},
		"nobody has looked":                  {func(k *keeper) { k.note.Last, k.lookedAt = 1, time.Time{} }, false},
		"nothing is there":                   {func(k *keeper) { k.note.Last = 1 }, true},
		"a run":                              {func(k *keeper) { k.roll.attach(1) }, false},
		"the run has ended":                  {func(k *keeper) { k.roll.attach(1); k.roll.detach(1, now) }, true},
		"its worker job lingers":             {func(k *keeper) { k.note.Last, k.jobs = 1, []WorkerJob{in(Running, 1, "a", 1, 0)} }, false},
		"one is to dial in":                  {func(k *keeper) { k.note.Last, k.fresh[1] = 1, true }, false},
		"some were submitted after the look": {func(k *keeper) { k.note.Last, k.sentAt = 1, now.Add(1) }, false},
	} {
		k := testKeeper(t, nil)
		k.lookedAt = now
		tt.change(k)
		if got := k.quiet(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
