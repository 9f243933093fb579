//go:build sites && soak

package peer

import "testing"

// On a small scale each peer runs its tasks and is measured.
func TestPeersRun(t *testing.T) {
	t.Chdir("../..")
	if err := SetUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range All() {
		if took, err := p.Run(t.Context(), t.TempDir(), 7); err != nil || took <= 0 {
			t.Errorf("%s took %s: %v", p.Name, took, err)
		}
	}
}
