//go:build soak

package montecarlo_test

import (
	"os"
	"strconv"
	"testing"
)

// Of 100 plans at least 95 agree within 3 points with 1,000 fresh outcomes; of as many as PLANS says, five in a hundred
// and one more may not, so that a few plans are a test, too.
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
