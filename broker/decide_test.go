package broker

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// The targets and nodes of the cases below.
var (
	up       = Target{Address: "c:9618", Local: netip.MustParseAddr("10.0.0.2"), TookMS: 1}
	down     = Target{Address: "c:9618", Trouble: "timed out"}
	cut      = Target{Address: "c:9618", Trouble: noRoute}
	nameless = Target{Address: "c:9618", Trouble: unknownName}
	silent   = Target{Address: "c:9618", Trouble: refused}
	live     = Target{Address: "b1:9618", Local: netip.MustParseAddr("10.0.0.2"), TookMS: 1}
	dead     = Target{Address: "b2:9618", Trouble: "connection refused"}
	cutoff   = Target{Address: "b3:9618", Trouble: noRoute}
	lonely   = Target{Address: "s:9618", Trouble: "timed out"}
	reached  = Node{Addresses: []string{"10.0.0.2:40000"}, Asked: true, Reached: "10.0.0.2:40000"}
	missed   = Node{Addresses: []string{"10.0.0.2:40000"}, Asked: true, Trouble: "10.0.0.2:40000: timed out"}
	unasked  = Node{Trouble: "there is no link to the pool's side"}
	here     = Target{Address: "127.0.0.1:9618", Trouble: refused}
	poolHere = Target{Address: "127.0.0.1:9618", Local: netip.MustParseAddr("10.0.0.2"), Remote: netip.MustParseAddrPort("127.0.0.1:9618")}
	relayed  = live // through a relay
	otherNet = Node{Asked: true, Reached: "[2001:db8::2]:40000"}
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const auto, none, ccb, relay = corral.BrokerAuto, corral.BrokerNone, corral.BrokerCCB, corral.BrokerRelay
	tests := []struct {
		name    string
		mode    corral.BrokerMode
		f       Findings
		way     corral.BrokerMode // empty: refused
		brokers string
		say     []string // parts of the reason or of the refusal
		passing bool     // the refusal may be temporary
	}{
		{"open net", auto, Findings{Collector: up, Node: reached}, none, "", []string{"reached this node at 10.0.0.2:40000"}, false},
		{"no mode is auto", "", Findings{Collector: up, Node: reached}, none, "", nil, false},
		{"open net does not care for brokers", auto, Findings{Collector: up, Brokers: []Target{dead}, Node: reached}, none, "", nil, false},
		{"node drops", auto, Findings{Collector: up, Node: missed}, ccb, "c:9618", []string{"could not connect to this node: 10.0.0.2:40000: timed out", "the collector is its broker"}, false},
		{"nobody to ask", auto, Findings{Collector: up, Node: unasked}, ccb, "c:9618", []string{"it is unknown whether", "no link"}, false},
		{"reached in another family", auto, Findings{Collector: up, Node: otherNet}, ccb, "c:9618", []string{"[2001:db8::2]:40000 only"}, false},
		{"one broker is dead", auto, Findings{Collector: up, Brokers: []Target{dead, live}, Node: missed}, ccb, "b1:9618", []string{"left out: b2:9618: connection refused"}, false},
		{"all brokers are dead", auto, Findings{Collector: up, Brokers: []Target{dead}, Node: missed}, "", "", []string{"timed out", "any CCB broker (b2:9618: connection refused)", "without --ccb"}, true},
		{"both private", auto, Findings{Collector: down, Node: missed}, "", "", []string{"c:9618 (timed out)", "relay through the site's connection", "25.12"}, true},
		{"pool down", auto, Findings{Collector: silent, Node: reached}, "", "", []string{"no process listens", "the pool is down"}, true},
		{"no route to the pool", auto, Findings{Collector: cut, Node: missed}, "", "", []string{"c:9618 (no route)", "it would need a relay", "25.12"}, false},
		{"no such pool", auto, Findings{Collector: nameless, Node: missed}, "", "", []string{"c:9618 (the name is not known)"}, false},
		{"no way to any broker", auto, Findings{Collector: up, Brokers: []Target{cutoff}, Node: missed}, "", "", []string{"b3:9618: no route"}, false},
		{"one broker may come back", auto, Findings{Collector: up, Brokers: []Target{cutoff, dead}, Node: missed}, "", "", []string{"b3:9618: no route; b2:9618"}, true},
		{"pool private", auto, Findings{Collector: down, Node: reached}, "", "", []string{"relay", "does reach this node, at 10.0.0.2:40000"}, true},
		{"public collector, both private", auto, Findings{Collector: up, Schedd: lonely, Node: missed}, "", "", []string{"s:9618 either (timed out)", "25.12", "relay"}, true},
		{"the same with streams", auto, Findings{Collector: up, Schedd: lonely, Streams: true, Node: missed}, ccb, "c:9618", nil, false},
		{"the schedd need not be reached by who is reached", auto, Findings{Collector: up, Schedd: lonely, Node: reached}, none, "", nil, false},

		{"none, open net", none, Findings{Collector: up, Node: reached}, none, "", nil, false},
		{"none, node drops", none, Findings{Collector: up, Node: missed}, "", "", []string{"10.0.0.2:40000: timed out", "--broker ccb would work"}, false},
		{"none, nothing works", none, Findings{Collector: up, Brokers: []Target{dead}, Node: missed}, "", "", []string{"timed out", "without --ccb"}, false},
		{"none, nobody to ask", none, Findings{Collector: up, Node: unasked}, none, "", []string{"asked for", "it is unknown whether"}, false},
		{"none, no collector", none, Findings{Collector: down, Node: reached}, "", "", []string{"collector", "relay"}, true},

		{"ccb", ccb, Findings{Collector: up, Node: unasked}, ccb, "c:9618", []string{"asked for"}, false},
		{"ccb, two brokers", ccb, Findings{Collector: up, Brokers: []Target{live, live}, Node: unasked}, ccb, "b1:9618 b1:9618", nil, false},
		{"ccb, all dead", ccb, Findings{Collector: up, Brokers: []Target{dead}, Node: unasked}, "", "", []string{"b2:9618: connection refused", "without --ccb"}, true},
		{"ccb, no collector", ccb, Findings{Collector: down, Brokers: []Target{live}, Node: unasked}, "", "", []string{"collector", "relay"}, true},

		{"relay", relay, Findings{Collector: up, Node: unasked}, "", "", []string{"it would need a relay", "only sites with an ssh contact"}, false},
		{"relay, there is one", relay, Findings{Collector: here, Relays: []Target{dead, relayed}, Node: unasked}, relay, "127.0.0.1:9618", []string{"asked for", "at b1:9618"}, false},
		{"relay, out of order", relay, Findings{Collector: here, Relays: []Target{dead}, Node: unasked}, "", "", []string{"b2:9618: connection refused"}, true},
		{"relay, the pool is elsewhere", relay, Findings{Collector: down, Relays: []Target{relayed}, Node: unasked}, "", "", []string{"listens on 127.0.0.1", "c:9618"}, false},
		{"no other way than the relay", auto, Findings{Collector: here, Relays: []Target{relayed}, Node: missed}, relay, "127.0.0.1:9618", []string{"127.0.0.1:9618 cannot be reached from here (connection refused)", "the site's relay connects"}, false},
		{"the pool itself is at this node", auto, Findings{Collector: poolHere, Relays: []Target{relayed}, Node: reached}, none, "", nil, false},
		{"another pilot's relay is at this node", auto, Findings{Collector: poolHere, Relays: []Target{relayed}, Node: missed}, relay, "127.0.0.1:9618", []string{"timed out; the site's relay"}, false},
		{"what works without a relay", auto, Findings{Collector: up, Relays: []Target{relayed}, Node: missed}, ccb, "c:9618", nil, false},
		{"neither", auto, Findings{Collector: here, Relays: []Target{dead}, Node: missed}, "", "", []string{"127.0.0.1:9618 (connection refused)", "relay does not connect", "b2:9618"}, true},
		{"the relay would work", ccb, Findings{Collector: here, Relays: []Target{relayed}, Node: missed}, "", "", []string{"--broker relay would work"}, true},
		{"unknown", "tunnel", Findings{Collector: up, Node: reached}, "", "", []string{"unknown mode"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.f.Decide(tt.mode)
			if got.Way != tt.way || strings.Join(got.Brokers, " ") != tt.brokers {
				t.Errorf("Decide() = %+v, want way %q, brokers %q", got, tt.way, tt.brokers)
			}
			said := got.Reason
			if tt.way == "" {
				said = err.Error()
				kind := corral.Unsatisfiable
				if tt.passing {
					kind = corral.Unavailable
				}
				if len(got.Measured) < 2+len(tt.f.Brokers) {
					t.Errorf("measured %q, want each line of it in spite of the refusal", got.Measured)
				}
				if corral.KindOf(err) != kind || !strings.HasPrefix(said, "--broker "+string(orAuto(tt.mode))) {
					t.Errorf("error %v, want it %s at the flag", err, kind)
				}
			} else if err != nil || got.Address != up.Local || len(got.Measured) < 2+len(tt.f.Brokers) {
				t.Errorf("Decide() = %+v, %v; want address %v and each measurement", got, err, up.Local)
			}
			if i := slices.IndexFunc(tt.say, func(s string) bool { return !strings.Contains(said, s) }); i >= 0 {
				t.Errorf("said %q, want %q in it", said, tt.say[i])
			}
		})
	}
}
