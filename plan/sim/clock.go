package sim

import (
	"math"
	"time"
)

// A clock represents virtual time. Events happen in chronological order; events of the same instant happen in the order
// in which they were scheduled, those of atFirst before the others.
type clock struct {
	begin  time.Time
	now    time.Duration // time since begin
	events []event       // a binary heap
	last   int64         // number of the last scheduled event
}

// An event is an action scheduled for an instant. A scheduled event cannot be cancelled, so an event that may become
// obsolete must check whether it is still valid.
type event struct {
	at     time.Duration
	number int64
	do     func()
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.number < f.number }

// time returns the current instant as a time.Time, which the production rules require.
func (c *clock) time() time.Time { return c.begin.Add(c.now) }

// since returns the time from the beginning to an instant.
func (c *clock) since(t time.Time) time.Duration { return t.Sub(c.begin) }

// at schedules an event, for the current instant at the earliest. Instants are whole milliseconds, as in records and in
// the store.
func (c *clock) at(at time.Duration, do func()) {
	c.last++
	c.push(event{max(c.now, wholeUp(at)), c.last, do})
}

// atFirst schedules an event that happens before those of its instant that at schedules.
func (c *clock) atFirst(at time.Duration, do func()) {
	c.last++
	c.push(event{max(c.now, wholeUp(at)), c.last + math.MinInt64, do})
}

func (c *clock) push(e event) {
	c.events = append(c.events, e)
	for i := len(c.events) - 1; i > 0; {
		above := (i - 1) / 2
		if !c.events[i].before(c.events[above]) {
			return
		}
		c.events[i], c.events[above] = c.events[above], c.events[i]
		i = above
	}
}

// after schedules an event after a delay.
func (c *clock) after(wait time.Duration, do func()) { c.at(c.now+wait, do) }

// pop removes the next event and advances time to it.
func (c *clock) pop() event {
	first, last := c.events[0], len(c.events)-1
	c.events[0] = c.events[last]
	c.events[last] = event{}
	c.events = c.events[:last]
	for i := 0; ; {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < last; below++ {
			if c.events[below].before(c.events[least]) {
				least = below
			}
		}
		if least == i {
			break
		}
		c.events[i], c.events[least] = c.events[least], c.events[i]
		i = least
	}
	c.now = first.at
	return first
}

// wholeUp rounds a duration up to whole milliseconds.
func wholeUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// gridAfter returns the next instant after now that is a whole number of steps from the beginning, like the ticks of a
// ticker started at the beginning.
func (c *clock) gridAfter(step time.Duration) time.Duration { return (c.now/step + 1) * step }
