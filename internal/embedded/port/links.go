package port

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// Links holds the connections of the pilots of embedded and HTCondor clusters, and the requests made to their attempts:
// to drain or to leave. A pilot receives the request as soon as it connects. It may reconnect at any time, so requests
// stay in memory for as long as corrald runs.
type Links struct {
	Terms wire.Terms // for every connection

	mu     sync.Mutex // guards the fields below
	closed bool
	asked  map[corral.JobID]corral.Ask
	conns  map[*wire.Conn]corral.JobID // :: connection → attempt of its pilot
	cut    map[corral.JobID]time.Time  // when the pilot's last connection ended without a bye message
}

// NewLinks returns Links without connections. Pilots receive the given terms: their workers end if corrald is silent
// for the length of a lease.
func NewLinks(terms wire.Terms) *Links {
	return &Links{Terms: terms, asked: map[corral.JobID]corral.Ask{}, conns: map[*wire.Conn]corral.JobID{},
		cut: map[corral.JobID]time.Time{}}
}

// Ask sends a request to the pilots of an attempt, now or when they next connect.
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

// Asked returns the request made to an attempt.
func (l *Links) Asked(attempt corral.JobID) corral.Ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[attempt]
}

// Close closes all connections of pilots, now and in the future. Pilots then look for another corrald.
func (l *Links) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.conns {
		_ = c.Net.Close()
	}
}

// join adds a connection and sends its pilot the request made before, if any.
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

// part removes a connection that has ended, with or without a bye message.
func (l *Links) part(c *wire.Conn, farewell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempt := l.conns[c]
	delete(l.conns, c)
	if !farewell && !slices.Contains(slices.Collect(maps.Values(l.conns)), attempt) {
		l.cut[attempt] = time.Now()
	}
}

// Cut returns the attempts whose pilots have lost their connection, and the time of the loss. The caller must call
// Forget when it learns that an attempt has ended.
func (l *Links) Cut() map[corral.JobID]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.cut)
}

// Forget removes an ended attempt from the result of Cut.
func (l *Links) Forget(attempt corral.JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.cut, attempt)
}
