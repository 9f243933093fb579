// Package broker determines how the schedd of an HTCondor pool can reach the workers of a node. There are three ways:
//
//   - directly: the schedd connects to the worker;
//   - through a broker (CCB): the worker keeps a connection to the broker, which tells it to connect to the schedd;
//   - through a relay on the site's head node, which carries connections over ssh (package relay).
//
// Negotiate, on the node, measures which of them work and returns the Choice. The package does not configure HTCondor;
// its caller does, with package condor.
//
// # How it works
//
// On the node, the pilot makes all measurements concurrently, within a few seconds (measure.go). It measures which of
// the collector, the brokers, the schedd and the relay the node can reach, and from which local address. It also
// measures whether the pool's side can reach the node: the node listens and sends a nonce to every connection, and the
// pool's side dials the given addresses and reports which of them sent the nonce (reach.go). The nonce distinguishes
// the node from another machine with the same private address on the pool's side.
//
// A pure function decides on the measurements, the Findings (decide.go). It also explains in words what blocks the way
// and what would work, because the reader can often open a port, but must know which one.
//
// Where no pilot has a link to corrald yet, a Probe does the same through a job's output (probe.go).
package broker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/corral-pilot/corral"
)

// A CallBack asks the pool's side to dial addresses, each the IP:PORT of a listener that sends nonce and a newline to
// every connection, and returns the one that was reached. An error of kind corral.Failed means that none was reached,
// and has the result of each; any other error means that the pool's side could not be asked.
type CallBack func(ctx context.Context, addresses []string, nonce string) (reached string, err error)

// Config states what to measure.
type Config struct {
	Mode      corral.BrokerMode // empty: auto
	Collector string            // HOST:PORT
	CCB       []string          // brokers, HOST:PORT; none: only the collector
	Schedd    string            // HOST:PORT; empty: behind the collector's port, as in Corral's pools
	Streams   bool              // the brokers forward streams (HTCondor 25.12 and newer)
	Ports     [2]uint16         // lowest and highest port at which this node may be dialled; zero: any
	CallBack  CallBack          // nil: the pool's side cannot be asked

	// Relays are the addresses of the site's relay, HOST:PORT; empty if the site has none.
	Relays []string
	// DialRelay connects to the pool through the relay at one of these addresses.
	DialRelay func(ctx context.Context, address string) (net.Conn, error)
}

// A Choice is the way in which the pool reaches the workers of this node.
type Choice struct {
	// Way is BrokerNone (directly), BrokerCCB, or BrokerRelay, for which the collector is the broker.
	Way       corral.BrokerMode
	Address   netip.Addr     // of this node, for the worker's use
	Collector netip.AddrPort // the collector's address that answered to Address
	Brokers   []string       // those that answered, HOST:PORT; none for BrokerNone
	Relays    []string       // for BrokerRelay: those that answered, HOST:PORT
	Reason    string         // one sentence
	Measured  []string       // one line per measurement
}

// Negotiate measures and decides, in some milliseconds, or a few seconds if something does not answer. If no job could
// reach workers of this node, the error explains why and what would work. It is Unavailable if the cause may be
// temporary, as with a collector that does not answer now, and otherwise Unsatisfiable; the choice then has only the
// measurements.
func Negotiate(ctx context.Context, c Config) (Choice, error) {
	f, err := measure(ctx, c)
	if err != nil {
		return Choice{}, err
	}
	return f.Decide(c.Mode)
}

// Decide returns the way for mode according to the findings; its errors are those of Negotiate.
func (f Findings) Decide(mode corral.BrokerMode) (Choice, error) {
	choice, err := decide(mode, f)
	if err != nil {
		err = corral.ErrorAt(corral.KindOf(err), "--broker "+string(orAuto(mode)), "%w", err)
		return Choice{Measured: f.Lines()}, err
	}
	if choice.Way != corral.BrokerRelay { // for that way, decide has set the collector's address itself
		choice.Collector = f.Collector.Remote
	}
	choice.Measured = f.Lines()
	return choice, nil
}

// orAuto returns the mode, or auto if none is requested.
func orAuto(mode corral.BrokerMode) corral.BrokerMode { return cmp.Or(mode, corral.BrokerAuto) }

// Lines describes the measurements for people.
func (f Findings) Lines() []string {
	lines := []string{"collector " + f.Collector.String()}
	for _, b := range f.Brokers {
		lines = append(lines, "broker "+b.String())
	}
	if f.Schedd.Address != "" {
		lines = append(lines, "schedd "+f.Schedd.String())
	}
	for _, r := range f.Relays {
		lines = append(lines, "relay "+r.String())
	}
	return append(lines, f.Node.String())
}

// String says whether the address was reached, with the time, or the reason if not.
func (t Target) String() string {
	if !t.reached() {
		return t.Address + ": " + t.Trouble
	}
	return fmt.Sprintf("%s: reached from %s in %.1f ms", t.Address, t.Local, t.TookMS)
}

// String describes the result of the pool's side.
func (n Node) String() string {
	switch {
	case !n.Asked:
		return "this node, from the pool's side: not asked, " + n.Trouble
	case n.Reached == "":
		return "this node, from the pool's side: " + n.Trouble
	}
	return "this node, from the pool's side: reached at " + n.Reached
}
