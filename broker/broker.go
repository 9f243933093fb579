// Package broker finds out how the schedd of an HTCondor pool can reach the workers of a node: directly,
// by a broker to which the worker keeps a connection (CCB), or through a relay on the site's head node. It measures from
// the node, where the pilot runs: can the collector be reached, and from which local address; which of the
// brokers; by the site's relay; and, by asking somebody at the pool's side to dial, can the node be reached. What was measured
// is decided on by one pure function, decide.
package broker

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/corral-pilot/corral"
)

// A CallBack asks the pool's side to dial addresses, each IP:PORT of a listener that sends nonce and a
// newline to whoever connects, and returns the one that was reached. An error of kind corral.Failed says
// that they were dialled and none was reached, and what became of each; any other error, that nobody
// could be asked.
type CallBack func(ctx context.Context, addresses []string, nonce string) (reached string, err error)

// Config says what to measure.
type Config struct {
	Mode      corral.BrokerMode // empty: auto
	Collector string            // HOST:PORT
	CCB       []string          // brokers, HOST:PORT; none: the collector is the only one
	Schedd    string            // HOST:PORT; empty: behind the collector's port, as in a pool of ours
	Streams   bool              // the brokers pass streams on (HTCondor 25.12 and newer)
	Ports     [2]uint16         // the lowest and the highest at which this node may be dialled; zero: any
	CallBack  CallBack          // nil: nobody can be asked

	Relays    []string                                                    // HOST:PORT of the site's relay; none: there is none
	DialRelay func(ctx context.Context, address string) (net.Conn, error) // connects with the pool through one of Relays
}

// A Choice says how the pool reaches the workers of this node.
type Choice struct {
	Way       corral.BrokerMode // BrokerNone: directly; BrokerCCB; or BrokerRelay, with which the collector is the broker
	Address   netip.Addr        // of this node, which the worker is to use
	Collector netip.AddrPort    // which of its addresses answered to Address
	Brokers   []string          // unless directly: those that answered, HOST:PORT
	Relays    []string          // for BrokerRelay: those that answered, HOST:PORT
	Reason    string            // one sentence
	Measured  []string          // one line for each thing that was measured
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
		return Choice{Measured: f.Lines()}, corral.ErrorAt(corral.KindOf(err), "--broker "+string(orAuto(mode)), "%w", err)
	}
	if choice.Way != corral.BrokerRelay { // which says it itself
		choice.Collector = f.Collector.Remote
	}
	choice.Measured = f.Lines()
	return choice, nil
}

func orAuto(mode corral.BrokerMode) corral.BrokerMode {
	if mode == "" {
		return corral.BrokerAuto
	}
	return mode
}

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

func (t Target) String() string {
	if !t.Reached() {
		return t.Address + ": " + t.Trouble
	}
	return fmt.Sprintf("%s: reached from %s in %.1f ms", t.Address, t.Local, t.TookMS)
}

func (n Node) String() string {
	switch {
	case !n.Asked:
		return "this node, from the pool's side: not asked, " + n.Trouble
	case n.Reached == "":
		return "this node, from the pool's side: " + n.Trouble
	}
	return "this node, from the pool's side: reached at " + n.Reached
}
