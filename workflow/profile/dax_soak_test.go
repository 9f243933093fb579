//go:build soak

package profile_test

import "testing"

// The tables of Montage and CyberShake have 10,429 and 815,823 tasks.
func TestLargeTablesFromDAX(t *testing.T) {
	t.Parallel()
	checkTableFromDAX(t, "montage")
	checkTableFromDAX(t, "cybershake")
}
