package credential

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRefuses(t *testing.T) {
	t.Parallel()
	login := Credential{Kind: SSHCertificate, Where: "/k-cert.pub", NotAfter: noon.Add(time.Hour)}
	carried := Credential{Kind: X509Proxy, Where: "/x509", Carried: true,
		NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour)}
	key := Credential{Kind: SSHKey, Where: "/k"}
	for name, c := range map[string]struct {
		all      []Credential
		at       time.Duration // after noon
		walltime time.Duration
		want     string // empty: it may be submitted
	}{
		"none":                            {nil, 0, time.Hour, ""},
		"never ends":                      {[]Credential{key}, 1e6 * time.Hour, time.Hour, ""},
		"login ends while the pilot runs": {[]Credential{login}, 59 * time.Minute, 48 * time.Hour, ""},
		"login has ended":                 {[]Credential{key, login}, time.Hour, time.Hour, "ssh certificate /k-cert.pub expired"},
		"carried lasts to the end":        {[]Credential{login, carried}, 0, time.Hour, ""},
		"carried ends before":             {[]Credential{login, carried}, 1, time.Hour, "before a pilot of 1h0m0s"},
		"carried is not valid yet":        {[]Credential{carried}, -2 * time.Hour, time.Minute, "not valid before"},
		"carried has ended":               {[]Credential{carried}, time.Hour, 0, "proxy /x509 expired"},
	} {
		got := Refuses(noon.Add(c.at), c.all, c.walltime)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
	}
}

// Between two turns the answer does not change.
func TestRefusesChangesAtTurns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	within := func() time.Duration { return time.Duration(r.Int64N(int64(100 * time.Minute))) }
	for range 500 {
		var all []Credential
		for range 1 + r.IntN(3) {
			c := Credential{Kind: Token, Where: "/t", Carried: r.IntN(2) == 0}
			if r.IntN(4) > 0 {
				c.NotAfter = noon.Add(within())
			}
			if r.IntN(2) > 0 {
				c.NotBefore = noon.Add(within())
			}
			all = append(all, c)
		}
		walltime := within() / 2
		turns := Turns(all, walltime)
		if !slices.IsSortedFunc(turns, time.Time.Compare) {
			t.Fatalf("turns %v", turns)
		}
		for range 20 {
			a, b := noon.Add(within()), noon.Add(within())
			if b.Before(a) {
				a, b = b, a
			}
			between := slices.ContainsFunc(turns, func(at time.Time) bool { return at.After(a) && !at.After(b) })
			x, y := Refuses(a, all, walltime), Refuses(b, all, walltime)
			if x != y && !between {
				t.Fatalf("%+v, walltime %s: at %s %q, at %s %q, turns %v", all, walltime, a, x, b, y, turns)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		life, left time.Duration // life 0: the beginning is unknown
		want       level
	}{
		"long before":           {365 * day, 25 * time.Hour, calm},
		"a day before":          {365 * day, 24 * time.Hour, soon},
		"an hour before":        {365 * day, time.Hour, urgent},
		"at its end":            {365 * day, 0, over},
		"half of twelve hours":  {12 * time.Hour, 6 * time.Hour, calm},
		"a third of twelve":     {12 * time.Hour, 4 * time.Hour, soon},
		"an hour of twelve":     {12 * time.Hour, time.Hour, urgent},
		"two of five minutes":   {5 * time.Minute, 2 * time.Minute, calm},
		"half a minute of five": {5 * time.Minute, 30 * time.Second, urgent},
		"of unknown age":        {0, 23 * time.Hour, soon},
	} {
		k := Credential{Kind: Token, Where: "/t", NotAfter: noon.Add(c.left)}
		if c.life > 0 {
			k.NotBefore = k.NotAfter.Add(-c.life)
		}
		got := k.level(noon)
		if got != c.want {
			t.Errorf("%s: level %d, want %d", name, got, c.want)
		}
		if said := k.warning(noon); (said == "") != (got == calm) {
			t.Errorf("%s: it says %q", name, said)
		}
		if next := k.nextLevel(noon); got < over && (k.level(next) <= got || k.level(next.Add(-1)) != got) {
			t.Errorf("%s: the next level begins at %s according to nextLevel, but is %d then", name, next, k.level(next))
		}
	}
	if k := (Credential{}); k.level(noon) != calm || !k.nextLevel(noon).IsZero() {
		t.Error("a credential without an end has a warning")
	}
}

// People are warned once per level, and are notified of the replacement of a credential only after a warning about it.
func TestWatch(t *testing.T) {
	t.Parallel()
	of := func(left time.Duration) []Credential {
		return []Credential{{Kind: Token, Where: "/t", NotAfter: noon.Add(left)}}
	}
	var w Watch
	for i, step := range []struct {
		after time.Duration // noon
		all   []Credential
		want  string // in the news; empty: no news
		rest  time.Duration
	}{
		{0, of(30 * time.Hour), "", 6 * time.Hour},
		{6 * time.Hour, of(30 * time.Hour), "in 24h0m0s", 23 * time.Hour},
		{7 * time.Hour, of(30 * time.Hour), "", 22 * time.Hour},
		{29*time.Hour + 30*time.Minute, of(30 * time.Hour), "in 30m0s", 30 * time.Minute},
		{29*time.Hour + 40*time.Minute, nil, "", 100 * time.Hour},
		{29*time.Hour + 40*time.Minute, of(30 * time.Hour), "in 20m0s", 20 * time.Minute},
		{30 * time.Hour, of(30 * time.Hour), "expired", 100 * time.Hour},
		{31 * time.Hour, of(90 * time.Hour), "was replaced", 35 * time.Hour},
		{32 * time.Hour, of(91 * time.Hour), "", 35 * time.Hour},
	} {
		now := noon.Add(step.after)
		news := strings.Join(w.News(now, step.all), "\n")
		if (news == "") != (step.want == "") || !strings.Contains(news, step.want) {
			t.Errorf("step %d: %q, want %q in it", i, news, step.want)
		}
		w.Tell(now, step.all)
		if got := w.Rest(now, 100*time.Hour); got != step.rest || !slices.Equal(w.Known(), step.all) {
			t.Errorf("step %d: rest %s, want %s; known %v", i, got, step.rest, w.Known())
		}
	}
}
