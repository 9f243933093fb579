//go:build soak

package e2e

import "testing"

// However often it is.
func TestUsageSurvivesManyKills(t *testing.T) {
	t.Parallel()
	usageSurvives(t, 20)
}
