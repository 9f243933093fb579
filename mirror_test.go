package corral

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const mib = 1 << 20

func measured(results ...bool) (h MirrorHealth) {
	for i, ok := range results {
		h = h.After(ok, 10*mib, time.Second, noon.Add(time.Duration(i)*time.Second))
	}
	return h
}

func TestRankMirrors(t *testing.T) {
	t.Parallel()
	slow := MirrorHealth{}.After(true, 10*mib, 100*time.Second, noon)
	mirrors := []Mirror{
		{ID: 1, Name: "broken", Health: measured(false, false, false)},
		{ID: 2, Name: "untried"},
		{ID: 3, Name: "good", Health: measured(true, true, true)},
		{ID: 4, Name: "mixed", Health: measured(true, false, true, false)},
		{ID: 5, Name: "untried too"},
		{ID: 6, Name: "slow", Health: slow},
	}
	names := func(at time.Time) (names []string) {
		for _, m := range RankMirrors(mirrors, at) {
			names = append(names, m.Name)
		}
		return names
	}
	if got, want := names(noon), []string{"good", "mixed", "untried", "untried too", "slow", "broken"}; !slices.Equal(got, want) {
		t.Errorf("rank %v, want %v", got, want)
	}
	years := noon.Add(10 * 365 * 24 * time.Hour)
	for _, m := range mirrors {
		if got, want := m.Health.score(years), (MirrorHealth{}).score(years); math.Abs(got-want) > 1 {
			t.Errorf("%s scores %g after years, want %g like an untried one", m.Name, got, want)
		}
	}
}

func TestHealthDecaysByHalfLives(t *testing.T) {
	t.Parallel()
	h := measured(true).After(false, 0, time.Second, noon.Add(healthHalfLife))
	if math.Abs(h.Successes-0.5) > 1e-9 || h.Failures != 1 || h.BytesPerS != 10*mib {
		t.Errorf("health %+v, want half a success and a failure", h)
	}
}

// For any measurements, a success at the mirror's own speed never leads to a lower score than a failure, and all
// numbers remain finite.
func TestHealthIsSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, at := MirrorHealth{}, noon
		for range rapid.IntRange(0, 20).Draw(t, "tries") {
			at = at.Add(time.Duration(rapid.Int64Range(-1e12, 1e16).Draw(t, "later")))
			h = h.After(rapid.Bool().Draw(t, "ok"), rapid.Int64Range(0, 1<<40).Draw(t, "bytes"),
				time.Duration(rapid.Int64Range(0, 1e14).Draw(t, "took")), at)
		}
		better := h.After(true, int64(h.BytesPerS)+priorBytesPerS, time.Second, at)
		worse := h.After(false, 0, time.Second, at)
		if !(better.score(at) >= worse.score(at)) || math.IsInf(h.score(at), 0) || !(h.score(at) > 0) {
			t.Fatalf("%+v: score %g, after a success %g, after a failure %g", h, h.score(at), better.score(at), worse.score(at))
		}
	})
}
