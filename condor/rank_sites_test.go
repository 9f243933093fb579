//go:build sites

package condor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
)

// ranked submits jobs one at a time to a pool of three glideins, of which the fastest is the largest, and returns the
// machine of each.
func ranked(t *testing.T, p *Pool, jobs int) (names []string) {
	t.Helper()
	secret := mint(t, p, time.Hour).Secret()
	for name, g := range map[string]struct {
		rate      float64
		cpus, mib int
	}{"slow": {2.3e9, 1, 100}, "middle": {2.5e9, 2, 200}, "fast": {2.8e9, 4, 400}} {
		c := glidein(t, p, name)
		c.Cpus, c.MemoryMiB = g.cpus, int64(g.mib)
		c.Attributes = classad.Ad{"CorralRate_compute": g.rate}
		start(t, p, c, secret)
		eventually(t, "the ad of "+name, func() (bool, error) { return len(machine(t, p, name)) > 0, nil })
	}
	for i := range jobs {
		name := fmt.Sprintf("job%d", i)
		s := sh(p, name, `sed -n 's/^Name = "[^@]*@\([^@"]*\).*/\1/p' "$_CONDOR_MACHINE_AD"; echo .`)
		s.Rank = "-(1.0e12 / TARGET.CorralRate_compute)"
		if err := submit(t, p, s); err != nil {
			t.Fatal(err)
		}
		var where string
		eventually(t, "the end of "+name, func() (bool, error) {
			b, err := os.ReadFile(filepath.Join(p.config.Dir, name+".out"))
			at, ended := strings.CutSuffix(strings.TrimSpace(string(b)), ".")
			where = strings.TrimSpace(at)
			return ended, ignoreMissing(err)
		})
		names = append(names, where)
	}
	return names
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// In Corral's pools a job's rank decides: all of twenty jobs run on the machine that they rank highest, although it is
// the largest. HTCondor's own NEGOTIATOR_PRE_JOB_RANK, which has precedence, would place them on the smallest.
func TestRankDecides(t *testing.T) {
	t.Parallel()
	if got := ranked(t, startPool(t), 20); slices.ContainsFunc(got, func(name string) bool { return name != "fast" }) {
		t.Errorf("jobs ran on %v", got)
	}
}

func TestRankDoesNotDecideByDefault(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.config.Extra = "NEGOTIATOR_PRE_JOB_RANK = (10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory"
	if err := p.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := ranked(t, p, 1); got[0] != "slow" {
		t.Errorf("a job ran on %q: then pools of ours need no rank of their own", got)
	}
}
