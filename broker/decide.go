package broker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// Findings are what was measured, from a node where workers are to run. They travel as JSON from a probe to corrald,
// and are all that decide looks at: what it decides can be tested without a network.
type Findings struct {
	Collector Target   `json:"collector"`
	Brokers   []Target `json:"brokers,omitempty"` // none: the collector is the only one
	Schedd    Target   `json:"schedd,omitzero"`   // none: behind the collector's port
	Streams   bool     `json:"streams,omitempty"` // the brokers pass streams on
	Relays    []Target `json:"relays,omitempty"`  // the site's relay, by each of its addresses; empty without a relay
	Node      Node     `json:"node"`
}

// A Target is an address that this node dialled.
type Target struct {
	Address string         `json:"address"`           // HOST:PORT
	Local   netip.Addr     `json:"local,omitzero"`    // of the connection's end at this node; none: not reached
	Remote  netip.AddrPort `json:"remote,omitzero"`   // of the other end
	TookMS  float64        `json:"took_ms,omitempty"` // to connect
	Trouble string         `json:"trouble,omitempty"` // why it was not reached
}

// Reached reports whether a connection was made.
func (t Target) Reached() bool { return t.Local.IsValid() }

// mayPass reports whether t, which was not reached, may be reached when it is tried again. A machine that restarts
// looks like one behind a firewall; only a missing route, or a name that does not exist, is taken for final.
func (t Target) mayPass() bool { return t.Trouble != noRoute && t.Trouble != unknownName }

// kindOf returns the kind of an error that some target was not reached, one of which would do.
func kindOf(unreached ...Target) corral.Kind {
	if slices.ContainsFunc(unreached, Target.mayPass) {
		return corral.Unavailable
	}
	return corral.Unsatisfiable
}

// Node is what the pool's side measured of this node.
type Node struct {
	Addresses []string `json:"addresses,omitempty"` // IP:PORT, where this node listened
	Asked     bool     `json:"asked"`               // the pool's side dialled them
	Reached   string   `json:"reached,omitempty"`   // that of Addresses which it reached
	Trouble   string   `json:"trouble,omitempty"`   // why it was not asked, or reached none
}

// address returns the address at which the pool's side reached this node.
func (n Node) address() (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(n.Reached)
	return ap.Addr(), err == nil
}

// decide returns how the pool reaches workers of a node of which f is known, or why none may be started
// there. It is pure.
//
// Asked for auto it prefers the direct way, which needs no third party, then a broker, which costs a connection for
// each worker, then the relay, through whose one connection all bytes go. Asked for one way it returns that way, or
// an error that says why it would not work and what would. A way that cannot work is refused before a worker starts:
// HTCondor itself would start it, and its jobs would wait without a reason.
func decide(mode corral.BrokerMode, f Findings) (Choice, error) {
	mode = orAuto(mode)
	if !slices.Contains(corral.BrokerModes, mode) {
		return Choice{}, corral.Errorf(corral.Unsatisfiable,
			"there is no such way; choose one of auto, none, ccb and relay")
	}
	relay, noRelay := f.relay()
	if mode == corral.BrokerRelay {
		relay.Reason = "asked for; " + relay.Reason
		return relay, noRelay
	}
	if !f.Collector.Reached() {
		why := f.cutOff(noRelay)
		if mode == corral.BrokerAuto && noRelay == nil {
			relay.Reason = fmt.Sprintf("the pool's collector %s is not reached from here (%s); %s",
				f.Collector.Address, f.Collector.Trouble, relay.Reason)
			return relay, nil
		}
		return Choice{}, why
	}
	direct, notDirect := f.direct()
	ccb, noBroker := f.ccb(noRelay)
	wouldWork := "--broker ccb would work"
	if noBroker != nil {
		wouldWork = noBroker.Error()
	}
	// A mode that is forced is not second-guessed where the measurement leaves a doubt, and refused where it does not.
	switch mode {
	case corral.BrokerNone:
		if notDirect != "" && !f.Node.Asked { // the person who asked for this way may know more than was measured
			return Choice{Way: corral.BrokerNone, Address: f.Collector.Local, Reason: "asked for; " + notDirect}, nil
		}
		if notDirect != "" {
			return Choice{}, corral.Errorf(corral.Unsatisfiable, "%s; %s", notDirect, wouldWork)
		}
		return direct, nil
	case corral.BrokerCCB:
		ccb.Reason = "asked for; " + ccb.Reason
		return ccb, noBroker
	}
	if notDirect == "" {
		return direct, nil
	}
	// Where the pool's side does not reach this node, what answers at a loopback address is not the pool but what
	// stands for it, another pilot's relay. With CCB our connections would end when that pilot does.
	if noRelay == nil && (noBroker != nil || f.Collector.Remote.Addr().IsLoopback()) {
		relay.Reason = notDirect + "; " + relay.Reason
		return relay, nil
	}
	if noBroker != nil {
		return Choice{}, corral.Errorf(corral.KindOf(noBroker), "%s; %w", notDirect, noBroker)
	}
	ccb.Reason = notDirect + "; " + ccb.Reason
	return ccb, nil
}

// relay returns the way through the site's relay, or why there is none. On the node the pilot listens where the pool
// does, and passes each connection on: so this works only for a pool at a loopback address.
func (f Findings) relay() (Choice, error) {
	if len(f.Relays) == 0 {
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "it would need a relay through the site's connection, "+
			"and there is none here: only sites with an ssh contact have one")
	}
	// HTCondor's daemons tell each other where the pool is, so a worker must find it at the same address as they do.
	pool, err := netip.ParseAddrPort(f.Collector.Address)
	if err != nil || !pool.Addr().IsLoopback() {
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "the site's relay can stand for a pool that listens on "+
			"127.0.0.1, where it takes its place on the node, and this one listens on %s", f.Collector.Address)
	}
	c := Choice{Way: corral.BrokerRelay, Collector: pool, Brokers: []string{f.Collector.Address}}
	var dead []string
	for _, r := range f.Relays {
		if !r.Reached() {
			dead = append(dead, r.String())
			continue
		}
		if len(c.Relays) == 0 {
			c.Address = r.Local
		}
		c.Relays = append(c.Relays, r.Address)
	}
	if len(c.Relays) == 0 {
		return Choice{}, corral.Errorf(kindOf(f.Relays...),
			"the site's relay does not connect this node with the pool (%s)", strings.Join(dead, "; "))
	}
	c.Reason = "the site's relay connects, at " + strings.Join(c.Relays, ", ")
	return c, nil
}

// bothPrivate explains to a person why the way that HTCondor is known for does not help.
const bothPrivate = "CCB alone cannot serve when both sides are private, as it only turns connections round" +
	" (brokers of HTCondor 25.12 and newer pass streams on, older ones do not)"

// cutOff says why a node that cannot reach the collector gets no worker without a relay: a worker must dial the
// collector, whatever way jobs take, and no broker changes that.
func (f Findings) cutOff(noRelay error) error {
	t := f.Collector
	if t.Trouble == refused && len(f.Relays) == 0 {
		return corral.Errorf(kindOf(t), "nobody listens at the pool's collector %s (%s): "+
			"the pool is down, or a firewall says no in its place", t.Address, refused)
	}
	unless := ""
	if t.mayPass() {
		unless = "unless that passes, "
	}
	also := bothPrivate
	if f.Node.Reached != "" {
		also = "the pool's side does reach this node, at " + f.Node.Reached
	}
	return corral.Errorf(kindOf(append([]Target{t}, f.Relays...)...),
		"this node could not connect to the pool's collector %s (%s), which a worker must to join the pool; %s%s; %s",
		t.Address, t.Trouble, unless, instead(noRelay), also)
}

// instead says whether a relay would work, and if not, why not.
func instead(noRelay error) string {
	if noRelay == nil {
		return "--broker relay would work"
	}
	return noRelay.Error()
}

// direct returns the way without a broker, or why there is none in the second result.
func (f Findings) direct() (Choice, string) {
	addr, reached := f.Node.address()
	switch {
	case !f.Node.Asked:
		return Choice{}, "nobody could say whether the pool's side reaches this node: " + f.Node.Trouble
	case !reached:
		return Choice{}, "the pool's side could not connect to this node: " + f.Node.Trouble
	// A worker is bound to one address, with which it both dials the collector and is dialled.
	case addr.Is4() != f.Collector.Local.Is4():
		return Choice{}, fmt.Sprintf("the pool's side reached this node at %s only, "+
			"which reaches the collector from %s", f.Node.Reached, f.Collector.Local)
	}
	return Choice{
		Way: corral.BrokerNone, Address: addr,
		Reason: "the pool's side reached this node at " + f.Node.Reached,
	}, ""
}

// ccb returns the way by brokers, or why there is none. A broker has one side dial the other, so the worker must reach
// the schedd, unless the brokers pass streams on.
func (f Findings) ccb(noRelay error) (Choice, error) {
	c := Choice{Way: corral.BrokerCCB, Address: f.Collector.Local}
	if f.Schedd.Trouble != "" && !f.Streams {
		unless := ""
		if !f.Node.Asked { // only a person knows whether the schedd's side reaches the node
			unless = "; --broker none, if you know that it does connect to this node"
		}
		return Choice{}, corral.Errorf(kindOf(f.Schedd),
			"this node could not connect to the pool's schedd %s either (%s); %s; %s%s",
			f.Schedd.Address, f.Schedd.Trouble, bothPrivate, instead(noRelay), unless)
	}
	if len(f.Brokers) == 0 {
		c.Brokers, c.Reason = []string{f.Collector.Address}, "the collector is its broker"
		return c, nil
	}
	var dead []string
	for _, b := range f.Brokers {
		if b.Reached() {
			c.Brokers = append(c.Brokers, b.Address)
		} else {
			dead = append(dead, b.String())
		}
	}
	if len(c.Brokers) == 0 {
		return Choice{}, corral.Errorf(kindOf(f.Brokers...), "this node could not connect to any CCB broker (%s); "+
			"without --ccb the collector would be the broker, and it answers", strings.Join(dead, "; "))
	}
	c.Reason = "broker " + strings.Join(c.Brokers, ", ") + " answers"
	if len(dead) > 0 {
		c.Reason += "; left out: " + strings.Join(dead, "; ")
	}
	return c, nil
}
