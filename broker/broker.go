// Package broker finds out how the schedd of an HTCondor pool can reach the workers of a node. There are three ways:
//
//   - directly: the schedd dials the worker;
//   - by a broker (CCB): the worker keeps a connection to the broker, which asks it to dial the schedd;
//   - through a relay on the site's head node, which carries connections over ssh (package relay).
//
// # How it works
//
// The pilot measures from the node, all at the same time and within a few seconds (measure.go): which of the
// collector, the brokers, the schedd and the relay it can dial, and from which local address; and, because only the
// pool's side can say so, whether the node can be dialled. For that the node listens and sends a nonce to whoever
// connects, and the pool's side dials the addresses that it is told and says which one sent the nonce (reach.go). The
// nonce tells the node from another machine that has the same private address at the pool's side.
//
// What was measured, the Findings, is decided on by one pure function (decide.go). It also says in words what is in the
// way, and what would work, because the person who reads it can often open a port, and only has to know which.
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

// A CallBack asks the pool's side to dial addresses, each IP:PORT of a listener that sends nonce and a
// newline to whoever connects, and returns the one that was reached. An error of kind corral.Failed says
// that they were dialled and none was reached, and what became of each; any other error says that the pool's
// side could not be asked.
type CallBack func(ctx context.Context, addresses []string, nonce string) (reached string, err error)

// Config says what to measure.
type Config struct {
	Mode      corral.BrokerMode // empty: auto
	Collector string            // HOST:PORT
	CCB       []string          // brokers, HOST:PORT; none: the collector is the only one
	Schedd    string            // HOST:PORT; empty: behind the collector's port, as in a pool of ours
	Streams   bool              // the brokers pass streams on (HTCondor 25.12 and newer)
	Ports     [2]uint16         // the lowest and the highest at which this node may be dialled; zero: any
	CallBack  CallBack          // nil: the pool's side cannot be asked

	// Relays are the addresses of the site's relay, HOST:PORT; empty if the site has none.
	Relays []string
	// DialRelay connects with the pool through the relay at one of these addresses.
	DialRelay func(ctx context.Context, address string) (net.Conn, error)
}

// A Choice says how the pool reaches the workers of this node.
type Choice struct {
	// Way is BrokerNone, which is directly, BrokerCCB, or BrokerRelay, with which the collector is the broker.
	Way       corral.BrokerMode
	Address   netip.Addr     // of this node, which the worker is to use
	Collector netip.AddrPort // which of its addresses answered to Address
	Brokers   []string       // unless directly: those that answered, HOST:PORT
	Relays    []string       // for BrokerRelay: those that answered, HOST:PORT
	Reason    string         // one sentence
	Measured  []string       // one line for each thing that was measured
}

// Negotiate measures and decides; it takes some milliseconds, or a few seconds where something does not
// answer. The error of a node whose workers no job could reach says what is in the way and what would
// work; it is Unavailable if that may pass, as with a collector that does not answer now, and else
// Unsatisfiable. The choice then has nothing but what was measured.
func Negotiate(ctx context.Context, c Config) (Choice, error) {
	f, err := Measure(ctx, c)
	if err != nil {
		return Choice{}, err
	}
	return f.Decide(c.Mode)
}

// Decide returns the way for mode after what was measured; it errs as Negotiate does.
func (f Findings) Decide(mode corral.BrokerMode) (Choice, error) {
	choice, err := decide(mode, f)
	if err != nil {
		err = corral.ErrorAt(corral.KindOf(err), "--broker "+string(orAuto(mode)), "%w", err)
		return Choice{Measured: f.Lines()}, err
	}
	if choice.Way != corral.BrokerRelay { // that way names the collector itself: the relay stands for it
		choice.Collector = f.Collector.Remote
	}
	choice.Measured = f.Lines()
	return choice, nil
}

// orAuto is the mode, or auto if none is asked for.
func orAuto(mode corral.BrokerMode) corral.BrokerMode { return cmp.Or(mode, corral.BrokerAuto) }

// Lines says what was measured, for people.
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

// String says whether the address was reached, and how fast or why not.
func (t Target) String() string {
	if !t.Reached() {
		return t.Address + ": " + t.Trouble
	}
	return fmt.Sprintf("%s: reached from %s in %.1f ms", t.Address, t.Local, t.TookMS)
}

// String says what the pool's side found.
func (n Node) String() string {
	switch {
	case !n.Asked:
		return "this node, from the pool's side: not asked, " + n.Trouble
	case n.Reached == "":
		return "this node, from the pool's side: " + n.Trouble
	}
	return "this node, from the pool's side: reached at " + n.Reached
}
