package broker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// Findings are what was measured, from a node where workers are to run.
type Findings struct {
	Collector Target   `json:"collector"`
	Brokers   []Target `json:"brokers,omitempty"` // none: the collector is the only one
	Schedd    Target   `json:"schedd,omitzero"`   // none: behind the collector's port
	Streams   bool     `json:"streams,omitempty"` // the brokers pass streams on
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

// mayPass reports whether t, which was not reached, may be when it is tried again: a machine that restarts looks like
// one behind a firewall.
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
func decide(mode corral.BrokerMode, f Findings) (Choice, error) {
	mode = orAuto(mode)
	if !slices.Contains(corral.BrokerModes, mode) {
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "there is no such way; choose one of auto, none, ccb and relay")
	}
	if !f.Collector.Reached() {
		return Choice{}, f.cutOff()
	}
	direct, notDirect := f.direct()
	ccb, noBroker := f.ccb()
	wouldWork := "--broker ccb would work"
	if noBroker != nil {
		wouldWork = noBroker.Error()
	}
	switch mode {
	case corral.BrokerNone:
		if notDirect != "" && !f.Node.Asked { // then it is not known better than by who asked for it
			return Choice{Way: corral.BrokerNone, Address: f.Collector.Local, Reason: "asked for; " + notDirect}, nil
		}
		if notDirect != "" {
			return Choice{}, corral.Errorf(corral.Unsatisfiable, "%s; %s", notDirect, wouldWork)
		}
		return direct, nil
	case corral.BrokerCCB:
		ccb.Reason = "asked for; " + ccb.Reason
		return ccb, noBroker
	case corral.BrokerRelay:
		return Choice{}, corral.Errorf(corral.Unsatisfiable, "this version has no relay through the site's connection; %s", wouldWork)
	}
	if notDirect == "" {
		return direct, nil
	}
	if noBroker != nil {
		return Choice{}, corral.Errorf(corral.KindOf(noBroker), "%s; %w", notDirect, noBroker)
	}
	ccb.Reason = notDirect + "; " + ccb.Reason
	return ccb, nil
}

const relayNeeded = "it would need a relay through the site's connection, which this version does not have"

const bothPrivate = "CCB alone cannot serve when both sides are private, as it only turns connections round" +
	" (brokers of HTCondor 25.12 and newer pass streams on, older ones do not)"

// cutOff says why a node that cannot reach the collector gets no worker, whatever was asked for.
func (f Findings) cutOff() error {
	t := f.Collector
	if t.Trouble == refused {
		return corral.Errorf(kindOf(t), "nobody listens at the pool's collector %s (%s): the pool is down, or a firewall says no in its place",
			t.Address, refused)
	}
	unless := ""
	if t.mayPass() {
		unless = "unless that passes, "
	}
	also := bothPrivate
	if f.Node.Reached != "" {
		also = "the pool's side does reach this node, at " + f.Node.Reached
	}
	return corral.Errorf(kindOf(t), "this node could not connect to the pool's collector %s (%s), which a worker must to join the pool; %s%s; %s",
		t.Address, t.Trouble, unless, relayNeeded, also)
}

// direct returns the way without broker, or why there is none.
func (f Findings) direct() (Choice, string) {
	addr, reached := f.Node.address()
	switch {
	case !f.Node.Asked:
		return Choice{}, "nobody could say whether the pool's side reaches this node: " + f.Node.Trouble
	case !reached:
		return Choice{}, "the pool's side could not connect to this node: " + f.Node.Trouble
	case addr.Is4() != f.Collector.Local.Is4(): // a worker that is bound to one cannot use the other
		return Choice{}, fmt.Sprintf("the pool's side reached this node at %s only, which reaches the collector from %s",
			f.Node.Reached, f.Collector.Local)
	}
	return Choice{
		Way: corral.BrokerNone, Address: addr,
		Reason: "the pool's side reached this node at " + f.Node.Reached,
	}, ""
}

// ccb returns the way by brokers, or why there is none.
func (f Findings) ccb() (Choice, error) {
	c := Choice{Way: corral.BrokerCCB, Address: f.Collector.Local}
	if f.Schedd.Trouble != "" && !f.Streams {
		return Choice{}, corral.Errorf(kindOf(f.Schedd), "this node could not connect to the pool's schedd %s either (%s); %s; %s",
			f.Schedd.Address, f.Schedd.Trouble, bothPrivate, relayNeeded)
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
		return Choice{}, corral.Errorf(kindOf(f.Brokers...),
			"this node could not connect to any CCB broker (%s); without --ccb the collector would be the broker, and it answers", strings.Join(dead, "; "))
	}
	c.Reason = "broker " + strings.Join(c.Brokers, ", ") + " answers"
	if len(dead) > 0 {
		c.Reason += "; left out: " + strings.Join(dead, "; ")
	}
	return c, nil
}
