package broker_test

import (
	"fmt"
	"net/netip"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
)

// The node reaches the collector, but the pool's side cannot connect to the node, which is behind a firewall.
func ExampleFindings_Decide() {
	findings := broker.Findings{
		Collector: broker.Target{Address: "pool.example.org:9618", Local: netip.MustParseAddr("10.0.0.2")},
		Node: broker.Node{
			Addresses: []string{"10.0.0.2:40000"}, Asked: true, Trouble: "10.0.0.2:40000: timed out",
		},
	}
	for _, mode := range []corral.BrokerMode{corral.BrokerAuto, corral.BrokerNone} {
		choice, err := findings.Decide(mode)
		if err != nil {
			fmt.Println(corral.KindOf(err))
			fmt.Println(err)
			continue
		}
		fmt.Println(choice.Way, choice.Brokers)
		fmt.Println(choice.Reason)
	}
	// Output:
	// ccb [pool.example.org:9618]
	// the pool's side could not connect to this node: 10.0.0.2:40000: timed out; the collector is its broker
	// unsatisfiable
	// --broker none: the pool's side could not connect to this node: 10.0.0.2:40000: timed out; --broker ccb would work
}
