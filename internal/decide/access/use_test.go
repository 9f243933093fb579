package access

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// A request is an owner's request in progress, with the number of bytes held for it.
type request struct {
	owner string
	held  int64
}

// A deed is an owner's action: it begins a request, sends more of its body, or ends it.
type deed struct {
	owner  string
	kind   int // 0: begin, 1: more of the body, 2: end
	bytes  int64
	which  int
	passes time.Duration // before
}

func deeds(t *rapid.T) []deed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			owner: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "owner"), kind: rapid.IntRange(0, 2).Draw(t, "kind"),
			bytes: rapid.Int64Range(0, 500).Draw(t, "bytes"), which: rapid.IntRange(0, 9).Draw(t, "which"),
			passes: time.Duration(rapid.IntRange(0, 2000).Draw(t, "passes")) * time.Millisecond,
		}
	}), 1, 80).Draw(t, "deeds")
}

// played returns the outcomes of one owner's deeds, and the owner's use afterwards. Unless alone is set, it also
// performs the deeds of other owners.
func played(t *rapid.T, l Limits, all []deed, of string, alone bool) (outcomes []string, use Use) {
	used, open := map[string]Use{}, []request{}
	now := time.Unix(1_000_000, 0)
	for _, d := range all {
		now = now.Add(d.passes)
		if alone && d.owner != of {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(open), func(r request) bool { return r.owner != d.owner })
		outcome := "nothing to do"
		var err error
		switch {
		case d.kind == 0:
			if used[d.owner], err = used[d.owner].Enter(now, d.owner, d.bytes, l); err == nil {
				open = append(open, request{d.owner, d.bytes})
			}
			outcome = said(t, err)
		case len(own) > 0:
			r := own[d.which%len(own)]
			i := slices.Index(open, r)
			if d.kind == 2 {
				used[d.owner], open = used[d.owner].Leave(r.held), slices.Delete(open, i, i+1)
				outcome = "ended"
				break
			}
			if used[d.owner], err = used[d.owner].Hold(d.owner, r.held, d.bytes, l); err == nil {
				open[i].held += d.bytes
			}
			outcome = said(t, err)
		}
		if d.owner == of {
			outcomes = append(outcomes, outcome)
		}
		check(t, l, used[d.owner], open, d.owner)
	}
	return outcomes, used[of]
}

// said returns the outcome of an action that may be refused: as Unavailable, with a wait.
func said(t *rapid.T, err error) string {
	if err == nil {
		return "let in"
	}
	var early *TooMany
	if !errors.As(err, &early) || early.Wait <= 0 || corral.KindOf(err) != corral.Unavailable {
		t.Fatalf("refused by %v", err)
	}
	return err.Error()
}

// check compares a use with the open requests and with the limits.
func check(t *rapid.T, l Limits, u Use, open []request, owner string) {
	var n int
	var held, largest int64
	for _, r := range open {
		if r.owner == owner {
			n, held, largest = n+1, held+r.held, max(largest, r.held)
		}
	}
	if u.requests != n || u.bodies != held {
		t.Fatalf("%s uses %+v, and %d requests with %d bytes are open", owner, u, n, held)
	}
	if n > l.Requests || held > max(l.Bodies, largest) {
		t.Fatalf("%s has %d requests with %d bytes, the largest %d, against %+v", owner, n, held, largest, l)
	}
}

// An owner's actions never change what another owner is allowed or uses, in any order of actions.
func TestOwnersDoNotMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Rate:     Rate{PerSecond: rapid.Float64Range(0.1, 5).Draw(t, "rate"), Burst: rapid.IntRange(1, 6).Draw(t, "burst")},
			Requests: rapid.IntRange(1, 6).Draw(t, "requests"), Bodies: rapid.Int64Range(100, 1500).Draw(t, "bodies"),
		}
		all := deeds(t)
		for _, of := range []string{"ann", "bob"} {
			both, used := played(t, l, all, of, false)
			alone, usedAlone := played(t, l, all, of, true)
			if !slices.Equal(both, alone) || used != usedAlone {
				t.Fatalf("%s beside the other: %q, %+v; alone: %q, %+v", of, both, used, alone, usedAlone)
			}
		}
	})
}

// A request is refused if it exceeds a limit, and admitted if it only reaches the limit. A limit of 0 is none.
func TestLimits(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	bodies := Limits{Bodies: 4 * mib}
	for _, tt := range []struct {
		name      string
		limits    Limits
		has       Use
		own, more int64 // bytes held for the request, and further ones
		want      string
	}{
		{"no limits", Limits{}, Use{requests: 1000, bodies: 1 << 50}, 0, 1 << 40, ""},
		{"the last request", Limits{Requests: 2}, Use{requests: 1}, 0, 0, ""},
		{"one request too many", Limits{Requests: 2}, Use{requests: 2}, 0, 0,
			"ann has reached the maximum of 2 requests in progress (--max-requests): nothing was done; try again in 1 s"},
		{"up to the limit", bodies, Use{bodies: 3 * mib}, 0, mib, ""},
		{"a byte too many", bodies, Use{bodies: 3*mib + 1}, 0, mib,
			"other requests of ann with 4 MiB are being read, and with this one they would exceed the 4 MiB"},
		{"nothing more", bodies, Use{bodies: 9 * mib}, 0, 0, ""},
		{"a large body alone", bodies, Use{}, 0, 9 * mib, ""},
		{"more of a large body alone", bodies, Use{bodies: 9 * mib}, 9 * mib, mib, ""},
		{"more of a body beside another", bodies, Use{bodies: 3 * mib}, 2 * mib, 2 * mib,
			"other requests of ann with 1 MiB are being read"},
	} {
		var err error
		if tt.own == 0 {
			_, err = tt.has.Enter(noon, "ann", tt.more, tt.limits)
		} else {
			_, err = tt.has.Hold("ann", tt.own, tt.more, tt.limits)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A client that comes too early learns the wait in whole seconds, which are never too few.
func TestTooOften(t *testing.T) {
	t.Parallel()
	limits := Limits{Rate: Rate{PerSecond: 0.5, Burst: 1}}
	use, err := Use{}.Enter(noon, "ann", 0, limits)
	if err != nil {
		t.Fatal(err)
	}
	_, err = use.Enter(noon.Add(500*time.Millisecond), "ann", 0, limits)
	var early *TooMany
	if !errors.As(err, &early) || early.Wait != 1500*time.Millisecond || early.Seconds() != 2 {
		t.Errorf("after half a second: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "more than 0.5 requests a second (--rate): nothing was done; try again in 2 s") {
		t.Errorf("after half a second: %v", err)
	}
	if _, err := use.Enter(noon.Add(2*time.Second), "ann", 0, limits); err != nil {
		t.Errorf("after two seconds: %v", err)
	}
	err = TooOften(time.Minute, "ann", "logs in", "once an hour")
	if err.Error() != "ann logs in more often than once an hour: nothing was done; try again in 60 s" {
		t.Errorf("too often: %v", err)
	}
}

// A use is discarded when it has no request, no bytes and a full bucket.
func TestIdle(t *testing.T) {
	t.Parallel()
	limits := Limits{Rate: Rate{PerSecond: 1, Burst: 2}}
	busy, err := Use{}.Enter(noon, "ann", 5, limits)
	if err != nil {
		t.Fatal(err)
	}
	later := noon.Add(time.Hour)
	for _, tt := range []struct {
		name string
		use  Use
		now  time.Time
		want bool
	}{
		{"never used", Use{}, noon, true},
		{"in use", busy, later, false},
		{"a request without a body", Use{requests: 1}, later, false},
		{"bytes alone", Use{bodies: 1}, later, false},
		{"just ended", busy.Leave(5), noon, false},
		{"ended long ago", busy.Leave(5), later, true},
	} {
		if got := tt.use.Idle(tt.now, limits); got != tt.want {
			t.Errorf("%s: idle %t, want %t", tt.name, got, tt.want)
		}
	}
}
