package queueing_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
)

// The result is based on the most specific waits available: the waits of like pilots in the queue, of all pilots in the
// queue, or of all pilots at the site. Without any waits, the result is marked as a guess. Waits that are eight days
// old do not count.
func TestExpect(t *testing.T) {
	t.Parallel()
	now := noon.Add(2 * time.Hour)
	old := shaped(4, 60, 1000)
	old.SubmittedAt = noon.Add(-8 * 24 * time.Hour)
	old.StartedAt = old.SubmittedAt.Add(1000 * time.Minute)
	week := old
	week.SubmittedAt = now.Add(-7 * 24 * time.Hour)
	week.StartedAt = week.SubmittedAt.Add(50 * time.Minute)
	other := shaped(4, 60, 90)
	other.Queue = "short"
	minutes := func(n int) corral.Seconds { return corral.Seconds(time.Duration(n) * time.Minute) }
	for name, c := range map[string]struct {
		waits []corral.Wait
		cpus  int
		want  queueing.Expected
	}{
		"like pilots": {[]corral.Wait{shaped(4, 60, 10), shaped(4, 60, 30), shaped(512, 60, 500), old}, 4,
			queueing.Expected{Wait: minutes(20), Spread: corral.Seconds(848528 * time.Millisecond), Waits: 2, Source: queueing.SourceLike}},
		"three": {[]corral.Wait{shaped(4, 60, 10), shaped(4, 60, 20), shaped(4, 60, 60)}, 4,
			queueing.Expected{Wait: minutes(30), Spread: corral.Seconds(1587451 * time.Millisecond), Waits: 3, Source: queueing.SourceLike}},
		"no like pilot: 1024 cpus": {[]corral.Wait{shaped(4, 60, 10), shaped(4, 60, 30), other}, 1024,
			queueing.Expected{Wait: minutes(20), Spread: corral.Seconds(848528 * time.Millisecond), Waits: 2, Source: queueing.SourceQueue}},
		"a week old": {[]corral.Wait{week, old}, 4, queueing.Expected{Wait: minutes(50), Waits: 1, Source: queueing.SourceLike}},
		"longer than the mean": {append(vain(4, 50, 1), shaped(4, 60, 10)), 4,
			queueing.Expected{Wait: minutes(30), Spread: corral.Seconds(1697056 * time.Millisecond), Waits: 2, Source: queueing.SourceLike}},
		"as long as the mean": {append(vain(4, 10, 1), shaped(4, 60, 10)), 4,
			queueing.Expected{Wait: minutes(10), Waits: 1, Source: queueing.SourceLike}},
		"as long as the guess": {vain(4, 45, 1), 4, queueing.Expected{Wait: minutes(45), Source: queueing.SourceGuess}},
		"none in the queue":    {[]corral.Wait{other, old}, 4, queueing.Expected{Wait: minutes(90), Waits: 1, Source: queueing.SourceSite}},
		"none but old ones":    {[]corral.Wait{old}, 4, queueing.Expected{Wait: minutes(45), Source: queueing.SourceGuess}},
		"none":                 {nil, 4, queueing.Expected{Wait: minutes(45), Source: queueing.SourceGuess}},
		"many that gave up at once": {append(vain(4, 0, 100), shaped(4, 60, 30)), 4,
			queueing.Expected{Wait: minutes(30), Waits: 1, Source: queueing.SourceLike}},
		"none but such":  {vain(4, 0, 100), 4, queueing.Expected{Wait: minutes(45), Source: queueing.SourceGuess}},
		"one that waits": {[]corral.Wait{waiting(30)}, 2, queueing.Expected{Wait: minutes(90), Waits: 1, Source: queueing.SourceLike}},
	} {
		got := queueing.Expect(c.waits, queueing.Shape{Queue: "long", CPUs: c.cpus, Walltime: time.Hour}, now, 45*time.Minute)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
