//go:build soak

package montecarlo_test

import "testing"

// Of 100 plans at least 95 agree within 3 points with 1,000 fresh outcomes.
func TestAHundredConfidences(t *testing.T) {
	agree := confidences(t, 100, 60, 0, 1000, 0.03)
	t.Logf("%d of 100 plans agree", agree)
	if agree < 95 {
		t.Errorf("%d of 100 plans agree with fresh outcomes within 3 points, want 95", agree)
	}
}
