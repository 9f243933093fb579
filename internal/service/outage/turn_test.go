package outage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A history gets entries for the beginning and the end, and nothing in between.
func TestReportsEdges(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := store.Subject{Object: corral.ObjectRun, ID: 7}
	said := map[store.Subject]corral.Outage{}
	look := func(at time.Duration, is corral.Outage, connected int) (news []string) {
		turn := turn{now: noon.Add(at), was: said, is: map[store.Subject]corral.Outage{}}
		turn.tell("ann", of, is, connected)
		for _, e := range turn.news {
			news = append(news, e.event+": "+e.reason)
		}
		said = turn.is
		return news
	}
	one, two := corral.Outage{Workers: 1, Of: 2, Since: noon}, corral.Outage{Workers: 2, Of: 2, Since: noon}
	for i, step := range []struct {
		at        time.Duration
		is        corral.Outage
		connected int
		want      []string
	}{
		{0, corral.Outage{}, 2, nil},
		{10 * time.Second, one, 1, []string{"out of reach: 1 of 2 workers are out of reach since 2026-01-02T12:00:00Z"}},
		{12 * time.Second, one, 1, nil},
		{14 * time.Second, two, 0, nil},
		{10 * time.Minute, corral.Outage{}, 2, []string{"within reach: all 2 workers are within reach again, after 10m0s"}},
		{11 * time.Minute, corral.Outage{}, 2, nil},
		{12 * time.Minute, two, 0, []string{"out of reach: 2 of 2 workers are out of reach since 2026-01-02T12:00:00Z"}},
		{13 * time.Minute, corral.Outage{}, 0, []string{"within reach: the unreachable workers have left"}},
	} {
		if diff := cmp.Diff(step.want, look(step.at, step.is, step.connected)); diff != "" {
			t.Errorf("step %d (-want +got): %s", i+1, diff)
		}
	}
}

// A run uses the workers of all glideins of its cluster.
func TestTally(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	got := tally{}.add(corral.Outage{}, 3).add(corral.Outage{Workers: 2, Of: 2, Since: noon}, 0).
		add(corral.Outage{Workers: 1, Of: 4, Since: noon.Add(-time.Minute)}, 3)
	want := tally{corral.Outage{Workers: 3, Of: 9, Since: noon.Add(-time.Minute)}, 6}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
