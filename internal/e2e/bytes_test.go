//go:build sites

package e2e

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/corral-pilot/corral"
)

// A site fetches each package once: the setup job that of the pilots, the first pilot of a pool that of its
// workers, and no pilot after it anything.
func TestPilotsAfterTheFirstFetchNothing(t *testing.T) {
	t.Parallel()
	u := newCondorUser(t, "CORRALD_SUPPLY=mirrors")
	u.corral("up") // its own site is FAILED: nobody has told it of a mirror yet
	u.must("package", "build", "--from-debian", "trixie")
	m, base := u.serveMirrors()
	u.must("mirror", "add", "counting", base+"/works")
	size := map[string]int64{} // :: what → bytes of its archive
	for _, p := range read[[]corral.Package](u.user, "package", "list") {
		size[p.What] = p.SizeBytes
	}
	u.must("cluster", "create", "mine", "--kind", "condor")

	u.must("site", "create", "here", "--contact", "local:", "--batch", "fork", "--root", filepath.Join(u.open, "here"), "--wait")
	sent := []int64{m.sent.Load()}
	for range 3 {
		g := u.must("glidein", "create", "--site", "here", "--cluster", "mine", "--wait", "-q")
		u.must("glidein", "remove", g, "--wait")
		sent = append(sent, m.sent.Load())
	}
	t.Logf("bytes after the setup, and after each pilot: %d, of packages of %v bytes", sent, size)
	if sent[0] < size["corral-pilot"] || sent[0] == 0 {
		t.Errorf("the setup fetched %d bytes, less than the pilot's package", sent[0])
	}
	if want := size["corral-pilot"] + size["htcondor"]; sent[1] != want {
		t.Errorf("%d bytes until the first pilot, want the %d of two packages", sent[1], want)
	}
	for n := 2; n < len(sent); n++ {
		if sent[n] != sent[1] {
			t.Errorf("pilot %s had %d bytes fetched, want none", strconv.Itoa(n), sent[n]-sent[n-1])
		}
	}
	u.must("down")
}
