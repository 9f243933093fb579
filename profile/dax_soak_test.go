//go:build soak

package profile_test

import "testing"

// The table of CyberShake has 815,823 tasks.
func TestCyberShakeFromDAX(t *testing.T) {
	t.Parallel()
	checkTableFromDAX(t, "cybershake")
}
