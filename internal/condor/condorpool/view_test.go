package condorpool

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

func TestCollectorQueryIntervals(t *testing.T) {
	a := someAttempt(7, "tag", 2)
	one := []corral.Worker{{ID: "tag/0", Attempt: 7, Connected: true}}
	two := append(one, corral.Worker{ID: "tag/1", Attempt: 7, Connected: true})
	gone := append(one, corral.Worker{ID: "tag/1", Attempt: 7})
	late := noon.Add(fastAfterAttempt)
	for name, test := range map[string]struct {
		live    []attempt
		workers []corral.Worker
		changed time.Time
		now     time.Time
		want    time.Duration
	}{
		"no attempt":                     {nil, nil, noon, noon, lookNever},
		"new attempt":                    {[]attempt{a}, nil, time.Time{}, noon, lookFast},
		"a worker lacks":                 {[]attempt{a}, one, time.Time{}, noon, lookFast},
		"a worker is away":               {[]attempt{a}, gone, time.Time{}, noon, lookFast},
		"all there":                      {[]attempt{a}, two, time.Time{}, noon, lookSlow},
		"all there since a moment":       {[]attempt{a}, two, noon, noon.Add(time.Second), lookFast},
		"waits in its site's queue long": {[]attempt{a}, nil, noon, late, lookSlow},
	} {
		v := view{asked: test.now, changed: test.changed}
		if got := v.wait(test.now, test.live, test.workers); got != test.want {
			t.Errorf("%s: wait() = %v, want %v", name, got, test.want)
		}
	}
}
