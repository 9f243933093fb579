//go:build soak

package main

import (
	"testing"
	"time"
)

// A batch system's waits are predicted at the submission of many jobs in the trace's second half, from the waits that
// had ended by then; the window was chosen on the first half. The bound of a quantile is above the true one in at least
// 95 % of the cases, and covers at least the requested share of jobs. The estimate covers the requested share within
// four points.
func TestBoundsOfWaitsHold(t *testing.T) {
	all, err := readTrace("testdata/kth-sp2.csv.gz")
	if err != nil || len(all) != 28476 {
		t.Fatalf("%d jobs, %v", len(all), err)
	}
	for share, c := range covered(all, len(all)/2, len(all)) {
		t.Logf("%g: %d cases; the true quantile is below the bound in %.3f; no longer than the bound %.3f, than the "+
			"estimate %.3f", share, c.cases, c.above, c.withinSafe, c.within)
		if c.above < 0.95 || c.withinSafe < share {
			t.Errorf("share %g: the true quantile is below the bound in %.3f of cases, and %.3f waited no longer", share,
				c.above, c.withinSafe)
		}
		if c.within < share-0.04 || c.within > share+0.04 {
			t.Errorf("share %g: %.3f waited no longer than the estimate", share, c.within)
		}
	}
}

// The mean of the trace's waits is its 0.82 quantile: a plan that uses it is rarely late, and often far too early.
func TestCurvesAreComparable(t *testing.T) {
	all, err := readTrace("testdata/kth-sp2.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for _, j := range all {
		sum += j.waited
	}
	below, mean := 0, sum/time.Duration(len(all))
	for _, j := range all {
		if j.waited <= mean {
			below++
		}
	}
	if share := float64(below) / float64(len(all)); mean.Round(time.Second) != 15296*time.Second || share < 0.815 ||
		share > 0.825 {
		t.Errorf("the mean is %s, the quantile of %.3f", mean, share)
	}
	curve := []tradeoff{{0.9, 0.1, 50}, {0.7, 0.3, 10}}
	if idle, ok := idleAt(curve, 0.2); !ok || idle < 29.9 || idle > 30.1 {
		t.Errorf("between 50 and 10: %v, %v", idle, ok)
	}
	if _, ok := idleAt(curve, 0.4); ok {
		t.Error("beyond what was measured")
	}
}
