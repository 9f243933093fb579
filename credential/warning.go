package credential

import (
	"fmt"
	"slices"
	"time"
)

// A level says how near the end of a credential is. People are warned once per level.
type level int

const (
	calm   level = iota // no warning
	soon                // within soonBefore
	urgent              // within urgentBefore
	over                // it has expired
)

// When people are warned. Some credentials last only hours or minutes and are renewed all day. If NotBefore is set, the
// warnings come in the last third and the last tenth of the lifetime instead, if that is later.
const (
	soonBefore   = 24 * time.Hour
	urgentBefore = time.Hour

	soonPart   = 3
	urgentPart = 10
)

// ahead returns how long before the end the warning of a level begins.
func (c Credential) ahead(l level) time.Duration {
	ahead, part := soonBefore, time.Duration(soonPart)
	switch l {
	case urgent:
		ahead, part = urgentBefore, urgentPart
	case over:
		return 0
	}
	if !c.NotBefore.IsZero() && c.NotBefore.Before(c.NotAfter) {
		ahead = min(ahead, c.NotAfter.Sub(c.NotBefore)/part)
	}
	return ahead
}

// level returns the credential's level at now.
func (c Credential) level(now time.Time) level {
	if c.NotAfter.IsZero() {
		return calm
	}
	for l := over; l > calm; l-- {
		if !now.Before(c.NotAfter.Add(-c.ahead(l))) {
			return l
		}
	}
	return calm
}

// nextLevel returns when the level changes next; zero: never.
func (c Credential) nextLevel(now time.Time) time.Time {
	if l := c.level(now); !c.NotAfter.IsZero() && l < over {
		return c.NotAfter.Add(-c.ahead(l + 1))
	}
	return time.Time{}
}

// warning returns the warning at now; empty at calm.
func (c Credential) warning(now time.Time) string {
	switch c.level(now) {
	case calm:
		return ""
	case over:
		return c.problem(now)
	}
	left := c.NotAfter.Sub(now).Truncate(time.Second)
	return fmt.Sprintf("the %s expires at %s, in %s: %s", c, stamp(c.NotAfter), left, c.remedy())
}

// A Watch remembers the warnings given about some credentials. The zero Watch has given none.
type Watch struct {
	known []Credential
	told  map[Credential]level
}

// News returns the warnings that are due at now for the present credentials: each level of each credential once, and
// that a credential was replaced after a warning. They count as given once Tell is called.
func (w *Watch) News(now time.Time, all []Credential) (news []string) {
	for _, c := range w.known {
		if w.told[c] > calm && !slices.Contains(all, c) && len(all) > 0 {
			news = append(news, fmt.Sprintf("the %s was replaced", c))
		}
	}
	for _, c := range all {
		if c.level(now) > w.told[c] {
			news = append(news, c.warning(now))
		}
	}
	return news
}

// Tell records that people received the News of now.
func (w *Watch) Tell(now time.Time, all []Credential) {
	w.known, w.told = all, map[Credential]level{}
	for _, c := range all {
		w.told[c] = c.level(now)
	}
}

// Known returns the credentials passed to the last Tell.
func (w *Watch) Known() []Credential { return w.known }

// Rest returns how long after now no News is due for those credentials, unless they are replaced; at most longest.
func (w *Watch) Rest(now time.Time, longest time.Duration) time.Duration {
	for _, c := range w.known {
		if next := c.nextLevel(now); !next.IsZero() {
			longest = min(longest, next.Sub(now))
		}
	}
	return longest
}
