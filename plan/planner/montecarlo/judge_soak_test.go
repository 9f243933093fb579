//go:build soak

package montecarlo_test

import (
	"os"
	"strconv"
	"testing"
)

// At least 95 of 100 plans agree with 1,000 new outcomes within 3 percentage points. PLANS sets the number of plans; 5
// % plus one may disagree, so that a small number is also a valid test.
func TestConfidencesAgreeWithFreshOutcomes(t *testing.T) {
	plans, err := strconv.Atoi(os.Getenv("PLANS"))
	if err != nil {
		plans = 4
	}
	agree := confidences(t, plans, 60, 0, 1000, 0.03)
	t.Logf("%d of %d plans agree", agree, plans)
	if may := plans / 20; plans-agree > max(1, may) {
		t.Errorf("%d of %d plans agree with fresh outcomes within 3 points; %d at most may not", agree, plans, max(1, may))
	}
}
