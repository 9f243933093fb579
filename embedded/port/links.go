package port

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
)

// Links are the connections of pilots, of embedded and of HTCondor clusters, and what was asked of their attempts:
// to drain or to leave. A pilot hears what was asked as soon as it is connected, so what is asked stays in memory
// for as long as corrald runs: a pilot may come back at any time.
type Links struct {
	Terms wire.Terms // of every connection

	mu     sync.Mutex // guards what follows
	closed bool
	asked  map[corral.JobID]corral.Ask
	conns  map[*wire.Conn]corral.JobID // :: connection → attempt of its pilot
	cut    map[corral.JobID]time.Time  // when the pilot's last connection ended without farewell
}

// NewLinks returns a set without links. Pilots get these terms: their workers die if corrald is silent for a lease.
func NewLinks(terms wire.Terms) *Links {
	return &Links{Terms: terms, asked: map[corral.JobID]corral.Ask{}, conns: map[*wire.Conn]corral.JobID{},
		cut: map[corral.JobID]time.Time{}}
}

// Ask tells the pilots of an attempt what they shall do, now or when they connect next.
func (l *Links) Ask(attempt corral.JobID, ask corral.Ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[attempt] = ask
	for c, a := range l.conns {
		if a == attempt {
			c.Send(wire.AskMessage(ask))
		}
	}
}

// Asked returns what was asked of an attempt.
func (l *Links) Asked(attempt corral.JobID) corral.Ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[attempt]
}

// Close ends all connections of pilots, and those that are made later. Pilots look for another corrald.
func (l *Links) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.conns {
		_ = c.Net.Close()
	}
}

// join adds a connection and tells its pilot what was asked before.
func (l *Links) join(c *wire.Conn, attempt corral.JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Net.Close()
		return
	}
	l.conns[c] = attempt
	delete(l.cut, attempt)
	if ask := l.asked[attempt]; ask != corral.AskNothing {
		c.Send(wire.AskMessage(ask))
	}
}

// part forgets a connection that has ended, with or without farewell.
func (l *Links) part(c *wire.Conn, farewell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempt := l.conns[c]
	delete(l.conns, c)
	if !farewell && !slices.Contains(slices.Collect(maps.Values(l.conns)), attempt) {
		l.cut[attempt] = time.Now()
	}
}

// Cut returns the attempts whose pilots have lost their connection, and since when. The caller, once it knows
// that an attempt is over, calls Forget.
func (l *Links) Cut() map[corral.JobID]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.cut)
}

// Forget forgets that the pilot of an attempt which is over has lost its connection.
func (l *Links) Forget(attempt corral.JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.cut, attempt)
}
