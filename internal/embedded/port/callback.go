package port

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// A pilot may ask this machine to dial its node. These limits prevent this machine from being used as a port scanner:
// see ADR 27.
const (
	maxCalls     = 128                    // concurrent calls for all pilots together
	callInterval = 500 * time.Millisecond // between two calls for one attempt, once each host has had one
)

// callBacks limits the calls that pilots request: the number of concurrent calls, and the rate for each attempt. A
// pilot may name any address; without a limit, one pilot could make corrald probe every port of a network.
type callBacks struct {
	slots chan struct{} // one for each call

	mu   sync.Mutex                 // guards the fields below
	used map[corral.JobID]time.Time // :: attempt → end of its last call, one each callInterval; if not past
}

func newCallBacks() callBacks {
	return callBacks{slots: make(chan struct{}, maxCalls), used: map[corral.JobID]time.Time{}}
}

// admit reports whether a call for the attempt is allowed now. The hosts of an attempt start at the same time, and each
// requests one call.
func (c *callBacks) admit(attempt corral.JobID, hosts int, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, t := range c.used {
		if !t.After(now) {
			delete(c.used, a)
		}
	}
	until, busy := c.used[attempt]
	if !busy {
		until = now
	}
	if until.Sub(now) > time.Duration(hosts-1)*callInterval {
		return false
	}
	c.used[attempt] = until.Add(callInterval)
	return true
}

// callBack dials the addresses that a pilot names and returns the answer: the address that was reached, or the reason
// why none was.
func (p *Port) callBack(ctx context.Context, c *wire.Conn, adm Admission, m *wire.Message) *wire.Message {
	answer := &wire.Message{Type: wire.TypeCalled, N: m.N}
	reached, err := p.call(ctx, c, adm, m)
	if err != nil {
		p.lg.Info("pilot cannot be reached", "attempt", adm.Attempt, "addresses", m.Addresses, "error", err)
		answer.Kind, answer.Reason = corral.KindOf(err), wire.Clip(err.Error())
		return answer
	}
	answer.Addresses = []string{reached}
	return answer
}

// call dials the addresses for a pilot. A pilot on another machine must not name loopback addresses of this machine,
// where local programs listen. call waits for a slot as long as the pilot's connection lasts.
func (p *Port) call(ctx context.Context, c *wire.Conn, adm Admission, m *wire.Message) (string, error) {
	if !isLocal(c.Net.RemoteAddr()) {
		for _, address := range m.Addresses {
			if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().Unmap().IsLoopback() {
				return "", corral.Errorf(corral.Forbidden, "%s is a loopback address of another machine", address)
			}
		}
	}
	if !p.calls.admit(adm.Attempt, max(1, adm.Hosts), time.Now()) {
		return "", corral.Errorf(corral.Unavailable,
			"the hosts of this attempt were called back less than %v ago", callInterval)
	}
	select {
	case p.calls.slots <- struct{}{}:
		defer func() { <-p.calls.slots }()
	case <-ctx.Done():
		return "", corral.Errorf(corral.Unavailable, "the connection ends")
	}
	return p.reach(ctx, m.Addresses, m.Nonce)
}

// isLocal reports whether a peer is on this machine, according to its address.
func isLocal(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
