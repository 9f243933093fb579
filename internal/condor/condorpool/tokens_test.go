//go:build sites

package condorpool

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

func (w *world) mint(c corral.Cluster, j corral.Job) string {
	w.t.Helper()
	secret, _, err := w.keepers.Mint(w.t.Context(), c.ID, j.ID, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// slots returns the number of slots in the collector that claim to belong to an attempt.
func (w *world) slots(c corral.Cluster, attempt corral.JobID) int {
	w.t.Helper()
	ads, err := w.tools(c).Query(w.t.Context(), "condor_status", []string{"-constraint", fmt.Sprintf("CorralAttempt == %d", attempt)}, []string{"Name"})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(ads)
}

// negotiated waits until the negotiator has completed two cycles with the jobs that are queued now. (It does not
// count considered jobs if there is no slot.)
func (w *world) negotiated(c corral.Cluster) {
	w.t.Helper()
	w.eventually("a schedd that offers its jobs", func() bool {
		ads, err := w.tools(c).Query(w.t.Context(), "condor_status", []string{"-submitters"}, []string{"IdleJobs"})
		if err != nil || len(ads) != 1 {
			return false
		}
		idle, _ := ads[0].Int("IdleJobs")
		return idle > 0
	})
	after := time.Now().Unix()
	w.eventually("two negotiations", func() bool {
		ads, err := w.tools(c).Query(w.t.Context(), "condor_status", []string{"-negotiator"}, []string{"LastNegotiationCycleTime1"})
		if err != nil || len(ads) != 1 {
			return false
		}
		began, _ := ads[0].Int("LastNegotiationCycleTime1")
		return began > after
	})
}

// TestOnlyLiveAttemptsGetJobs lets thieves with valid tokens offer slots under the number of an attempt that is not
// live, and of a live attempt other than their token's.
func TestOnlyLiveAttemptsGetJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	live, other := w.attempt(c, 1, 2), w.attempt(c, 1, 2)
	ghost := live
	ghost.ID = 999
	w.glidein(c, ghost, w.mint(c, live), nil)
	w.glidein(c, live, w.mint(c, other), nil)
	w.eventually("the thieves' slots", func() bool { return w.slots(c, ghost.ID) > 0 && w.slots(c, live.ID) > 0 })
	job := w.submit(c)
	w.negotiated(c)
	if w.queued(c, job) != 1 {
		t.Error("a job ran in a slot of no live attempt")
	}
	if workers := w.keepers.Workers(c.ID); len(workers) > 0 {
		t.Errorf("workers = %+v, want none", workers)
	}

	w.glidein(c, live, w.mint(c, live), nil)
	w.eventually("a worker", func() bool { return len(w.keepers.Workers(c.ID)) == 1 })
	from := time.Now()
	w.eventually("end of the job", func() bool { return w.queued(c, job) == 0 })
	t.Logf("a job that waited was done %v after a live attempt's worker was seen", time.Since(from).Round(time.Millisecond))

	// The attempt ends but its slot remains: the slot receives no further job.
	w.write(func(tx *store.Tx) error { return end(tx, live.ID) })
	w.eventually("end of the worker", func() bool { return len(w.keepers.Workers(c.ID)) == 0 })
	w.eventually("the negotiator's word", func() bool {
		return !strings.Contains(w.constraint(c), fmt.Sprintf("%q", fmt.Sprintf("%d %s", live.ID, condor.GlideinIdentity(int64(live.ID)))))
	})
	if w.slots(c, live.ID) == 0 {
		t.Fatal("the slot of the attempt that ended has gone")
	}
	late := w.submit(c)
	w.negotiated(c)
	if w.queued(c, late) != 1 {
		t.Error("a job ran in a slot of an attempt that has ended")
	}
}

// constraint returns the negotiator's constraint on slots.
func (w *world) constraint(c corral.Cluster) string {
	out, err := w.tools(c).Run(w.t.Context(), nil, "condor_config_val", "-negotiator", "NEGOTIATOR_SLOT_CONSTRAINT")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// TestTokensOfEndedAttemptsAreRevoked also checks attempts that ended while corrald was down.
func TestTokensOfEndedAttemptsAreRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	first, second, third := w.attempt(c, 1, 1), w.attempt(c, 1, 1), w.attempt(c, 1, 1)
	a, b, good := w.stranger(c, w.mint(c, first)), w.stranger(c, w.mint(c, second)), w.stranger(c, w.mint(c, third))
	for _, tools := range []condor.Tools{a, b, good} {
		if err := ping(t, tools); err != nil {
			t.Fatal(err)
		}
	}
	w.write(func(tx *store.Tx) error { return end(tx, first.ID) })
	w.eventually("first refusal", func() bool { return ping(t, a) != nil })

	w.endRun()
	w.write(func(tx *store.Tx) error { return end(tx, second.ID) })
	w.begin()
	w.eventually("second refusal", func() bool { return ping(t, b) != nil })
	if err := ping(t, good); err != nil {
		t.Errorf("the token of a live attempt: %v", err)
	}
	w.eventually("the note", func() bool {
		var over []corral.PoolToken
		err := storetest.All(w.db).View(t.Context(), func(tx *store.Tx) (err error) {
			over, err = tx.PoolTokensOver(c.ID)
			return err
		})
		return err == nil && len(over) == 0
	})
}

// stranger returns the commands of a client that has only a token's text.
func (w *world) stranger(c corral.Cluster, secret string) condor.Tools {
	w.t.Helper()
	dir, err := os.MkdirTemp(w.dir, "stranger-")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	tools, err := condor.Attach(condor.RemoteConfig{Dir: dir + "/remote", Release: release, Collector: c.Collector, RunAs: programs.Unprivileged()}, secret)
	if err != nil {
		w.t.Fatal(err)
	}
	return tools
}

func ping(t *testing.T, tools condor.Tools) error {
	_, err := tools.Run(t.Context(), nil, "condor_ping", "-type", "collector", "ADVERTISE_STARTD")
	return err
}

func TestMintRecordsBeforeItReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.ready("mine")
	j := w.attempt(c, 1, 1)
	token, err := condor.ParseToken(w.mint(c, j))
	if err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error { return end(tx, j.ID) })
	var over []corral.PoolToken
	w.endRun()
	err = storetest.All(w.db).View(t.Context(), func(tx *store.Tx) (err error) {
		over, err = tx.PoolTokensOver(c.ID)
		return err
	})
	if err != nil || len(over) > 0 && over[0].ID != token.ID {
		t.Errorf("tokens over = %+v, %v", over, err)
	}
	w.begin()
	if _, _, err := w.keepers.Mint(t.Context(), 77, j.ID, time.Hour); corral.KindOf(err) != corral.NotFound {
		t.Errorf("Mint() for no cluster: %v, want not found", err)
	}
}
