package resubmit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/resubmit"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want resubmit.Policy
	}{
		{"", resubmit.Policy{Mode: resubmit.Never}},
		{"never", resubmit.Policy{Mode: resubmit.Never}},
		{"0", resubmit.Policy{Mode: resubmit.Never}},
		{"2", resubmit.Policy{Mode: resubmit.Times, Limit: 2}},
		{"forever", resubmit.Policy{Mode: resubmit.Forever}},
		{"until=2026-11-21T13:00:00+01:00", resubmit.Policy{Mode: resubmit.Until, Deadline: noon}},
		{"until=1970-01-01T00:00:00Z", resubmit.Policy{Mode: resubmit.Until, Deadline: time.Unix(0, 0).UTC()}},
		{"until=9999-12-31T23:59:59Z", resubmit.Policy{Mode: resubmit.Until,
			Deadline: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}},
	} {
		got, err := resubmit.Parse(c.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.in, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, word string }{
		{"-1", "-1"},
		{"often", "often"},
		{"1.5", "1.5"},
		{"until=tomorrow", "RFC 3339"},
		{"until=", "RFC 3339"},
		{"until=0001-01-01T00:00:00Z", "year"},
		{"until=0000-01-01T00:00:00+23:00", "year"},
		{"until=9999-12-31T23:00:00-02:00", "year"}, // year 10000 in UTC, which RFC 3339 cannot express
		{"99999999999999999999", "99999999999999999999"},
	} {
		if p, err := resubmit.Parse(c.in); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("Parse(%q) = %v, %v; want an error with %q", c.in, p, err, c.word)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "never", "0", "7", "+7", "-0", "forever", "until=", "until=2026-11-21T12:00:00Z",
		"until=2026-11-21T12:00:00.25Z", "until=0001-01-01T00:00:00Z", "until=9999-12-31T23:59:59-01:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := resubmit.Parse(s)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("Parse(%q) = %+v, which is not valid: %v", s, p, err)
		}
		again, err := resubmit.Parse(p.String())
		if err != nil || again != p {
			t.Fatalf("Parse(%q) = %+v, whose String %q is parsed as %+v, %v", s, p, p, again, err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("Parse(%q) = %+v, which JSON cannot encode: %v", s, p, err)
		}
		var read resubmit.Policy
		if err := json.Unmarshal(b, &read); err != nil || read != p {
			t.Fatalf("%+v through %s came back as %+v, %v", p, b, read, err)
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    resubmit.Policy
		word string // of the error; empty: valid
	}{
		{resubmit.Policy{}, ""},
		{resubmit.Policy{Mode: resubmit.Times, Limit: 1, Retries: 3}, ""},
		{resubmit.Policy{Retries: -1}, "retries"},
		{resubmit.Policy{Mode: resubmit.Times}, "limit"},
		{resubmit.Policy{Mode: resubmit.Forever, Limit: 1}, "limit"},
		{resubmit.Policy{Mode: resubmit.Until}, "deadline"},
		{resubmit.Policy{Mode: resubmit.Never, Deadline: noon}, "deadline"},
		{resubmit.Policy{Mode: "sometimes"}, "sometimes"},
	} {
		err := c.p.Validate()
		if (err == nil) != (c.word == "") || err != nil && !strings.Contains(err.Error(), c.word) {
			t.Errorf("Validate of %+v: %v, want %q", c.p, err, c.word)
		}
	}
}

// history returns attempts that ended a minute apart, the last one at noon.
func history(results ...resubmit.Result) (h resubmit.History) {
	for i, r := range results {
		h = h.Then(resubmit.Attempt{EndedAt: noon.Add(time.Duration(i-len(results)+1) * time.Minute), Result: r})
	}
	return h
}

func TestNext(t *testing.T) {
	t.Parallel()
	const (
		expired, transient = resubmit.Expired, resubmit.Transient
		finished, broken   = resubmit.Finished, resubmit.Broken
	)
	forever := resubmit.Policy{Mode: resubmit.Forever, Retries: 2}
	twice := resubmit.Policy{Mode: resubmit.Times, Limit: 2, Retries: 1}
	until := func(d time.Duration) resubmit.Policy {
		return resubmit.Policy{Mode: resubmit.Until, Deadline: noon.Add(d)}
	}
	for _, c := range []struct {
		name    string
		policy  resubmit.Policy
		history resubmit.History
		want    resubmit.Verdict
		after   time.Duration // of the earliest next attempt, from the last end
	}{
		{"nothing yet", resubmit.Policy{}, history(), resubmit.Again, 0},
		{"never", resubmit.Policy{}, history(expired), resubmit.Finish, 0},
		{"first of two", twice, history(expired), resubmit.Again, 0},
		{"second of two", twice, history(expired, expired), resubmit.Again, 0},
		{"third of two", twice, history(expired, expired, expired), resubmit.Finish, 0},
		{"a loss is not a resubmission", twice, history(expired, transient, expired), resubmit.Again, 0},
		{"before the deadline", until(time.Second), history(expired), resubmit.Again, 0},
		{"at the deadline", until(0), history(expired), resubmit.Finish, 0},
		{"forever", forever, history(expired, expired, expired), resubmit.Again, 0},
		{"idle ends forever", forever, history(expired, finished), resubmit.Finish, 0},
		{"broken ends forever", forever, history(expired, broken), resubmit.Fail, 0},
		{"first loss", forever, history(transient), resubmit.Again, resubmit.BackoffMin},
		{"second loss in a row", forever, history(transient, transient), resubmit.Again, 2 * resubmit.BackoffMin},
		{"one loss too many", forever, history(transient, transient, transient), resubmit.Fail, 0},
		{"an expiry between losses", forever, history(transient, transient, expired, transient), resubmit.Again, resubmit.BackoffMin},
		{"no room", resubmit.Policy{}, history(resubmit.NoRoom), resubmit.Again, resubmit.RoomPause},
		{"no room for long", resubmit.Policy{}, history(slices.Repeat([]resubmit.Result{resubmit.NoRoom}, 99)...), resubmit.Again, resubmit.RoomPause},
		{"not known", resubmit.Policy{}, history(resubmit.NotKnown), resubmit.Again, resubmit.HelpPause},
		{"a loss after there was no room", forever, history(transient, transient, resubmit.NoRoom, transient), resubmit.Again, resubmit.BackoffMin},
		{"unknown result", forever, history("?"), resubmit.Fail, 0},
	} {
		got, notBefore, why := c.policy.Next(c.history, noon, 0)
		if got != c.want || why == "" {
			t.Errorf("%s: Next = %s, %q; want %s", c.name, got, why, c.want)
		}
		want := time.Time{}
		if c.after > 0 {
			want = noon.Add(c.after)
		}
		if !notBefore.Equal(want) {
			t.Errorf("%s: not before %s, want %s", c.name, notBefore, want)
		}
	}
}

// TestBackoff checks that the pause doubles, stays below 1.5 times its maximum for any clock, and does not overflow.
func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "losses")
		jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		p := resubmit.Policy{Retries: n}
		losses := history(slices.Repeat([]resubmit.Result{resubmit.Transient}, n)...)
		verdict, plain, _ := p.Next(losses, noon, 0)
		_, with, _ := p.Next(losses, noon, jitter)
		wait := plain.Sub(noon)
		if verdict != resubmit.Again || wait < resubmit.BackoffMin || wait > resubmit.BackoffMax {
			t.Fatalf("after %d losses: %s in %s", n, verdict, wait)
		}
		if with.Before(plain) || with.Sub(noon) > wait+wait/2 {
			t.Fatalf("after %d losses: %s without jitter, %s with", n, wait, with.Sub(noon))
		}
		back := noon.Add(-time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "the clock was set back")))
		if _, at, _ := p.Next(losses, back, jitter); at.Sub(back) > 2*resubmit.BackoffMax {
			t.Fatalf("after %d losses: another %s later, with a clock that was set back by %s", n, at.Sub(back), noon.Sub(back))
		}
	})
}

// Jitter lengthens every pause by up to half of it: a jitter of 0.5 by a quarter.
func TestJitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		history resubmit.History
		want    time.Duration
	}{
		{history(resubmit.Transient), 2500 * time.Millisecond},
		{history(slices.Repeat([]resubmit.Result{resubmit.Transient}, 40)...), 12*time.Minute + 30*time.Second},
		{history(resubmit.NoRoom), 6*time.Minute + 15*time.Second},
		{history(resubmit.NotKnown), 12*time.Minute + 30*time.Second},
	} {
		_, at, _ := resubmit.Policy{Retries: 40}.Next(c.history, noon, 0.5)
		if got := at.Sub(noon); got != c.want {
			t.Errorf("after %s: a pause of %s, want %s", c.history.Last.Result, got, c.want)
		}
	}
}

// A pause that seems to last for more than twice the longest back-off shows that the clock was set back: the next
// attempt is due at once.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ back, pause time.Duration }{
		{time.Minute, 6 * time.Minute},
		{15 * time.Minute, 20 * time.Minute},
		{15*time.Minute + 1, 0},
		{time.Hour, 0},
	} {
		now := noon.Add(-c.back)
		_, at, _ := resubmit.Policy{}.Next(history(resubmit.NoRoom), now, 0)
		if got := at.Sub(now); got != c.pause {
			t.Errorf("set back by %s: a pause of %s, want %s", c.back, got, c.pause)
		}
	}
}

// TestAttemptsAreBounded checks that a policy of N resubmissions and R retries never makes more than (N+1)(R+1)
// attempts, whatever their results.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	results := []resubmit.Result{resubmit.Expired, resubmit.Transient, resubmit.Finished, resubmit.Broken}
	rapid.Check(t, func(t *rapid.T) {
		limit, retries := rapid.IntRange(1, 5).Draw(t, "limit"), rapid.IntRange(0, 4).Draw(t, "retries")
		p := resubmit.Policy{Mode: resubmit.Times, Limit: limit, Retries: retries}
		var past resubmit.History
		for attempts := 0; ; attempts++ {
			if attempts > (limit+1)*(retries+1) {
				t.Fatalf("attempt %d with %d resubmissions and %d retries", attempts, limit, retries)
			}
			verdict, _, _ := p.Next(past, noon, 0)
			if verdict != resubmit.Again {
				return
			}
			past = past.Then(resubmit.Attempt{EndedAt: noon, Result: rapid.SampledFrom(results).Draw(t, "result")})
		}
	})
}
