package credential

import (
	"fmt"
	"slices"
	"time"
)

// A Level says how near the end of a credential is. People are warned once per level.
type Level int

const (
	Calm   Level = iota // no warning
	Soon                // within SoonBefore
	Urgent              // within UrgentBefore
	Over                // it has expired
)

// When people are warned. Some credentials last only hours or minutes and are renewed all day. If NotBefore is set, the
// warnings come in the last third and the last tenth of the lifetime instead, if that is later.
const (
	SoonBefore   = 24 * time.Hour
	UrgentBefore = time.Hour

	soonPart   = 3
	urgentPart = 10
)

// ahead returns how long before the end the warning of a level begins.
func (c Credential) ahead(l Level) time.Duration {
	ahead, part := SoonBefore, time.Duration(soonPart)
	switch l {
	case Urgent:
		ahead, part = UrgentBefore, urgentPart
	case Over:
		return 0
	}
	if !c.NotBefore.IsZero() && c.NotBefore.Before(c.NotAfter) {
		ahead = min(ahead, c.NotAfter.Sub(c.NotBefore)/part)
	}
	return ahead
}

// Level returns the credential's level at now.
func (c Credential) Level(now time.Time) Level {
	if c.NotAfter.IsZero() {
		return Calm
	}
	for l := Over; l > Calm; l-- {
		if !now.Before(c.NotAfter.Add(-c.ahead(l))) {
			return l
		}
	}
	return Calm
}

// NextLevel returns when the Level changes next; zero: never.
func (c Credential) NextLevel(now time.Time) time.Time {
	if l := c.Level(now); !c.NotAfter.IsZero() && l < Over {
		return c.NotAfter.Add(-c.ahead(l + 1))
	}
	return time.Time{}
}

// Warning returns the warning at now; empty at Calm.
func (c Credential) Warning(now time.Time) string {
	switch c.Level(now) {
	case Calm:
		return ""
	case Over:
		return c.Problem(now)
	}
	left := c.NotAfter.Sub(now).Truncate(time.Second)
	return fmt.Sprintf("the %s expires at %s, in %s: %s", c, stamp(c.NotAfter), left, c.remedy())
}

// A Watch remembers the warnings given about some credentials. The zero Watch has given none.
type Watch struct {
	known []Credential
	told  map[Credential]Level
}

// News returns the warnings that are due at now for the present credentials: each level of each credential once, and
// that a credential was replaced after a warning. They count as given once Tell is called.
func (w *Watch) News(now time.Time, all []Credential) (news []string) {
	for _, c := range w.known {
		if w.told[c] > Calm && !slices.Contains(all, c) && len(all) > 0 {
			news = append(news, fmt.Sprintf("the %s was replaced", c))
		}
	}
	for _, c := range all {
		if c.Level(now) > w.told[c] {
			news = append(news, c.Warning(now))
		}
	}
	return news
}

// Tell records that people received the News of now.
func (w *Watch) Tell(now time.Time, all []Credential) {
	w.known, w.told = all, map[Credential]Level{}
	for _, c := range all {
		w.told[c] = c.Level(now)
	}
}

// Known returns the credentials passed to the last Tell.
func (w *Watch) Known() []Credential { return w.known }

// Rest returns how long after now no News is due for those credentials, unless they are replaced; at most longest.
func (w *Watch) Rest(now time.Time, longest time.Duration) time.Duration {
	for _, c := range w.known {
		if next := c.NextLevel(now); !next.IsZero() {
			longest = min(longest, next.Sub(now))
		}
	}
	return longest
}
