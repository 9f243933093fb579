//go:build sites

package pilot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A worker survives its pool's restart while its token is valid.
func TestCondorWorkerAndThePoolsRestart(t *testing.T) {
	t.Parallel()
	needPool(t)
	p, config := ownPool(t)
	place := newCondorSite(t, newService(t), func(o *jobfiles.PilotOrder) {
		o.Condor.Collector, o.Walltime = config.Address.String(), corral.Seconds(3*time.Minute)
	})
	joined.Store(place.root, p)
	minted, err := p.Mint(7, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place.dir, jobfiles.PoolToken), []byte(minted.Secret()), 0o600); err != nil {
		t.Fatal(err)
	}
	giveAway(t, place.root)
	r := place.start()
	before, _ := place.inPool(1)[0].Int("CorralPID")
	if err := errors.Join(p.Stop(soon(t)), p.Start(soon(t))); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if after, _ := place.inPool(1)[0].Int("CorralPID"); after != before {
		t.Errorf("worker %d became %d, want the same", before, after)
	}
	t.Logf("in the pool again after %s", time.Since(from).Round(time.Millisecond))
	if err := p.Revoke(soon(t), time.Now(), minted); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Stop(soon(t)), p.Start(soon(t))); err != nil { // otherwise open sessions last for ten minutes
		t.Fatal(err)
	}
	from = time.Now()
	rep := r.report(1, corral.OutcomeFailed, false)
	t.Logf("left %s after its token was revoked", time.Since(from).Round(time.Millisecond))
	if !strings.Contains(rep.Reason, "the pool refused the token") {
		t.Errorf("reason %q", rep.Reason)
	}
}

// ownPool starts a pool for one test.
func ownPool(t *testing.T) (*condor.Pool, condor.PoolConfig) {
	t.Helper()
	dir, err := openFolder("pilot-own-")
	if err != nil {
		t.Fatal(err)
	}
	config, err := poolConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := condor.NewPool(config)
	if err == nil {
		err = p.Start(soon(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(p, dir); err != nil {
			t.Error(err)
		}
	})
	return p, config
}
