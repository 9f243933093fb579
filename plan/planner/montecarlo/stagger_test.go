package montecarlo

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// TestStaggered: the pilots of each queue are submitted, and start, as much later as corrald's pace of submissions
// requires; the plan itself remains unchanged.
func TestStaggered(t *testing.T) {
	t.Parallel()
	const minute = corral.Seconds(time.Minute)
	var made plan.Plan
	for i := range 45 {
		q := plan.Pilot{Site: "hpc", Queue: "normal", Start: minute, Ready: 2 * minute}
		if i%9 == 8 {
			q.Queue = "short"
		}
		made.Pilots = append(made.Pilots, q)
	}
	late := map[string][]corral.Seconds{}
	for i, q := range staggered(&made).Pilots {
		if q.Start != q.Submit+minute || q.Ready != q.Submit+2*minute || made.Pilots[i].Submit != 0 {
			t.Errorf("pilot %d is %+v, and was %+v", i, q, made.Pilots[i])
		}
		late[q.Queue] = append(late[q.Queue], q.Submit)
	}
	for queue, all := range late {
		for k, got := range all {
			if want := corral.Seconds(k / 20 * int(2*time.Second)); got != want {
				t.Errorf("pilot %d of queue %s is submitted after %s, want %s", k, queue, got, want)
			}
		}
	}
}
