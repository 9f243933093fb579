package credential

import (
	"fmt"
	"slices"
	"time"
)

// A Level is how near the end of a credential is. People are told of each once.
type Level int

const (
	Calm   Level = iota // there is nothing to say
	Soon                // within SoonBefore
	Urgent              // within UrgentBefore
	Over                // it has expired
)

// When people are warned. Credentials are made for hours or minutes, too, and renewed all day: of those that know since
// when they are good, the warnings come in the last third and the last tenth of their time instead, if that is later.
const (
	SoonBefore   = 24 * time.Hour
	UrgentBefore = time.Hour

	soonPart   = 3
	urgentPart = 10
)

// ahead is how long before the end the warning of a level begins.
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

// Level is how near its end is at now.
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

// NextLevel is when its Level changes next; zero: it does not.
func (c Credential) NextLevel(now time.Time) time.Time {
	if l := c.Level(now); !c.NotAfter.IsZero() && l < Over {
		return c.NotAfter.Add(-c.ahead(l + 1))
	}
	return time.Time{}
}

// Warning is what people are told of it at now; empty at Calm.
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

// A Watch remembers what people were told of some credentials. The zero Watch has told nothing.
type Watch struct {
	known []Credential
	told  map[Credential]Level
}

// News is what people are to be told at now of the credentials that there are, and were not told yet: each level of
// each, once, and that one which they were warned of was replaced. They count as told once Tell is called.
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

// Tell notes that people were told the News at now.
func (w *Watch) Tell(now time.Time, all []Credential) {
	w.known, w.told = all, map[Credential]Level{}
	for _, c := range all {
		w.told[c] = c.Level(now)
	}
}

// Known are the credentials that there were when people were told last.
func (w *Watch) Known() []Credential { return w.known }

// Rest is how long after now nothing is to be told of those, unless they are replaced; at most as long as longest.
func (w *Watch) Rest(now time.Time, longest time.Duration) time.Duration {
	for _, c := range w.known {
		if next := c.NextLevel(now); !next.IsZero() {
			longest = min(longest, next.Sub(now))
		}
	}
	return longest
}
