package broker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// Findings are the measurements from a node where workers will run. A probe sends them to corrald as JSON. They are the
// only input of decide, so that its decisions can be tested without a network.
type Findings struct {
	Collector Target   `json:"collector"`
	Brokers   []Target `json:"brokers,omitempty"` // none: the collector is the only one
	Schedd    Target   `json:"schedd,omitzero"`   // none: behind the collector's port
	Streams   bool     `json:"streams,omitempty"` // the brokers forward streams
	Relays    []Target `json:"relays,omitempty"`  // the site's relay, at each of its addresses; empty without a relay
	Node      Node     `json:"node"`
}

// A Target is an address that this node dialled.
type Target struct {
	Address string         `json:"address"`           // HOST:PORT
	Local   netip.Addr     `json:"local,omitzero"`    // this node's end of the connection; none: not reached
	Remote  netip.AddrPort `json:"remote,omitzero"`   // the other end
	TookMS  float64        `json:"took_ms,omitempty"` // to connect
	Trouble string         `json:"trouble,omitempty"` // why it was not reached
}

// reached reports whether a connection was made.
func (t Target) reached() bool { return t.Local.IsValid() }

// mayPass reports whether an unreached t may be reached later. A machine that restarts looks like one behind a
// firewall, so only a missing route and a name that does not exist count as permanent.
func (t Target) mayPass() bool { return t.Trouble != noRoute && t.Trouble != unknownName }

// kindOf returns the kind of the error that none of several alternative targets was reached.
func kindOf(unreached ...Target) corral.Kind {
	if slices.ContainsFunc(unreached, Target.mayPass) {
		return corral.Unavailable
	}
	return corral.Unsatisfiable
}

// Node is the measurement of this node by the pool's side.
type Node struct {
	Addresses []string `json:"addresses,omitempty"` // IP:PORT, where this node listened
	Asked     bool     `json:"asked"`               // the pool's side dialled them
	Reached   string   `json:"reached,omitempty"`   // the one of Addresses that it reached
	Trouble   string   `json:"trouble,omitempty"`   // why it was not asked, or reached none
}

// address returns the address at which the pool's side reached this node.
func (n Node) address() (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(n.Reached)
	return ap.Addr(), err == nil
}

// decide returns how the pool reaches workers of a node with findings f, or why no worker may be started there. It is a
// pure function.
//
// For auto it prefers the direct way, which needs no third party, then a broker, which costs a connection per worker,
// then the relay, which carries all bytes over one connection. For another mode it returns that way, or an error that
// explains why it would not work and what would. An impossible way is refused before a worker starts, because HTCondor
// itself would start the worker, and its jobs would wait without explanation.
func decide(mode corral.BrokerMode, f Findings) (Choice, error) {
	mode = orAuto(mode)
	if !slices.Contains(corral.BrokerModes, mode) {
		return Choice{}, corral.Errorf(corral.Unsatisfiable,
			"unknown mode; choose one of auto, none, ccb and relay")
	}
	relay, noRelay := f.relay()
	if mode == corral.BrokerRelay {
		relay.Reason = "asked for; " + relay.Reason
		return relay, noRelay
	}
	if !f.Collector.reached() {
		why := f.cutOff(noRelay)
		if mode == corral.BrokerAuto && noRelay == nil {
			relay.Reason = fmt.Sprintf("the pool's collector %s cannot be reached from here (%s); %s",
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
	// A forced mode is accepted if the measurement leaves a doubt, and refused if it does not.
	switch mode {
	case corral.BrokerNone:
		if notDirect != "" && !f.Node.Asked { // the user who chose this way may know more
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
	// If the pool's side does not reach this node, a listener at a loopback address is not the pool but its proxy,
	// another pilot's relay. With CCB our connections would end with that pilot.
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

// relay returns the way through the site's relay, or why there is none. On the node, the pilot listens at the pool's
// address and forwards each connection, so this works only for a pool at a loopback address.
func (f Findings) relay() (Choice, error) {
	if len(f.Relays) == 0 {
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "it would need a relay through the site's connection, "+
			"which only sites with an ssh contact have")
	}
	// HTCondor's daemons tell each other the pool's address, so a worker must reach the pool at the same address.
	pool, err := netip.ParseAddrPort(f.Collector.Address)
	if err != nil || !pool.Addr().IsLoopback() {
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "the site's relay can only replace a pool that listens "+
			"on 127.0.0.1, and this one listens on %s", f.Collector.Address)
	}
	c := Choice{Way: corral.BrokerRelay, Collector: pool, Brokers: []string{f.Collector.Address}}
	var dead []string
	for _, r := range f.Relays {
		if !r.reached() {
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

// bothPrivate explains why CCB, the way for which HTCondor is known, does not help.
const bothPrivate = "CCB alone does not help when both sides are private, because it only reverses connections" +
	" (brokers of HTCondor 25.12 and newer forward streams, older ones do not)"

// cutOff explains why a node that cannot reach the collector gets no worker without a relay: a worker must connect to
// the collector, whatever way jobs take, and no broker changes that.
func (f Findings) cutOff(noRelay error) error {
	t := f.Collector
	if t.Trouble == refused && len(f.Relays) == 0 {
		return corral.Errorf(kindOf(t), "no process listens at the pool's collector %s (%s): "+
			"the pool is down, or a firewall rejects the connection", t.Address, refused)
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
		"this node could not connect to the pool's collector %s (%s), as workers must to join the pool; %s%s; %s",
		t.Address, t.Trouble, unless, instead(noRelay), also)
}

// instead says whether a relay would work and, if not, why not.
func instead(noRelay error) string {
	if noRelay == nil {
		return "--broker relay would work"
	}
	return noRelay.Error()
}

// direct returns the way without a broker, or in the second result why there is none.
func (f Findings) direct() (Choice, string) {
	addr, reached := f.Node.address()
	switch {
	case !f.Node.Asked:
		return Choice{}, "it is unknown whether the pool's side reaches this node: " + f.Node.Trouble
	case !reached:
		return Choice{}, "the pool's side could not connect to this node: " + f.Node.Trouble
	// A worker is bound to one address, which it uses both to reach the collector and to be reached.
	case addr.Is4() != f.Collector.Local.Is4():
		return Choice{}, fmt.Sprintf("the pool's side reached this node at %s only, "+
			"which reaches the collector from %s", f.Node.Reached, f.Collector.Local)
	}
	return Choice{
		Way: corral.BrokerNone, Address: addr,
		Reason: "the pool's side reached this node at " + f.Node.Reached,
	}, ""
}

// ccb returns the way through brokers, or why there is none. A broker makes one side connect to the other, so the
// worker must be able to reach the schedd, unless the brokers forward streams.
func (f Findings) ccb(noRelay error) (Choice, error) {
	c := Choice{Way: corral.BrokerCCB, Address: f.Collector.Local}
	if f.Schedd.Trouble != "" && !f.Streams {
		unless := ""
		if !f.Node.Asked { // only the user may know whether the schedd reaches the node
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
		if b.reached() {
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
