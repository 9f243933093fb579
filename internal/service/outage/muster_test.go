package outage

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func TestOutage(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	here := corral.Worker{Connected: true, SeenAt: noon}
	gone := func(ago time.Duration) corral.Worker { return corral.Worker{SeenAt: noon.Add(-ago)} }
	expired := corral.Worker{SeenAt: noon.Add(-time.Hour), EndsAt: noon.Add(-time.Minute)}
	minute := noon.Add(-time.Minute)
	for name, c := range map[string]struct {
		muster
		want corral.Outage
	}{
		"none":                          {},
		"all are there":                 {muster: muster{workers: []corral.Worker{here, here}}},
		"one is gone for a moment":      {muster: muster{workers: []corral.Worker{here, gone(9 * time.Second)}}},
		"one is gone":                   {muster{workers: []corral.Worker{here, gone(10 * time.Second)}}, corral.Outage{Workers: 1, Of: 2, Since: noon.Add(-10 * time.Second)}},
		"the second has just followed":  {muster{workers: []corral.Worker{gone(time.Second), gone(time.Minute)}}, corral.Outage{Workers: 2, Of: 2, Since: minute}},
		"its time is over":              {muster: muster{workers: []corral.Worker{here, expired}}},
		"it goes on":                    {muster{workers: []corral.Worker{here, gone(time.Second)}, was: corral.Outage{Workers: 2, Of: 2, Since: minute}}, corral.Outage{Workers: 1, Of: 2, Since: minute}},
		"they are back":                 {muster: muster{workers: []corral.Worker{here, here}, was: corral.Outage{Workers: 2, Of: 2, Since: minute}}},
		"they have left":                {muster: muster{was: corral.Outage{Workers: 2, Of: 2, Since: minute}}},
		"corrald has started again":     {muster{was: corral.Outage{Workers: 2, Of: 2, Since: minute}, blind: true}, corral.Outage{Workers: 2, Of: 2, Since: minute}},
		"and one of them has come back": {muster{workers: []corral.Worker{here}, was: corral.Outage{Workers: 2, Of: 2, Since: minute}, blind: true}, corral.Outage{Workers: 1, Of: 2, Since: minute}},
		"and all of them have":          {muster: muster{workers: []corral.Worker{here, here}, was: corral.Outage{Workers: 2, Of: 2, Since: minute}, blind: true}},
	} {
		if got := c.outage(noon); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The history entry of an outage is read again after a restart; other entries are not mistaken for one.
func TestOutageIsReadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1e6).Draw(t, "workers")
		o := corral.Outage{Workers: n, Of: n + rapid.IntRange(0, 9).Draw(t, "more"),
			Since: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC()}
		if got, ok := parse(sentence(o)); !ok || got != o {
			t.Errorf("parse(%q) = %+v, %v", sentence(o), got, ok)
		}
	})
	for _, s := range []string{"", "all 2 workers are within reach", "3 of 2 workers are out of reach since 2026-01-02T12:00:00Z",
		"1 of 2 workers are out of reach since noon"} {
		if got, ok := parse(s); ok {
			t.Errorf("parse(%q) = %+v", s, got)
		}
	}
}
