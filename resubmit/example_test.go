package resubmit_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/resubmit"
)

// A glidein is resubmitted once if its walltime has ended. Up to three consecutive attempts that were lost or failed are
// retried; they do not count as resubmissions.
func ExamplePolicy_Next() {
	policy, err := resubmit.Parse("1")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy.Retries = 3
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	var history resubmit.History
	for _, result := range []resubmit.Result{resubmit.Transient, resubmit.Expired, resubmit.Expired} {
		history = history.Then(resubmit.Attempt{EndedAt: now, Result: result})
		verdict, notBefore, why := policy.Next(history, now, 0)
		if notBefore.Before(now) {
			notBefore = now
		}
		fmt.Printf("%s: %s after %s: %s\n", result, verdict, notBefore.Sub(now), why)
	}
	// Output:
	// transient: again after 2s: retry 1 of 3
	// expired: again after 0s: resubmission 1 of 1
	// expired: finish after 0s: all 1 resubmissions used
}
