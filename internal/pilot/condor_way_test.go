package pilot_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
)

// That corrald reaches a node says nothing of a schedd that is elsewhere: jobs must come without anybody having dialled.
func TestCondorWorkerOfAnAttachedPoolIsReachedByItsBroker(t *testing.T) {
	t.Parallel()
	for name, attached := range map[string]bool{"the pool is ours": false, "it is attached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			place := newCondorSite(t, s, func(p *order.Pilot) { p.Condor.Broker, p.Condor.Attached = corral.BrokerAuto, attached })
			r := place.start()
			address, _ := place.inPool(1)[0].Text("MyAddress")
			if byBroker := strings.Contains(address, "CCBID="); byBroker != attached {
				t.Errorf("attached: %v, and the worker's address is %s", attached, address)
			}
			cluster := place.job("exit 0", 1)
			eventually(t, "the end of the job", func() bool { return len(place.states(cluster)) == 0 })
			s.dispatcher.Leave(7)
			rep := r.report(0, corral.OutcomeRemoved, false)
			if said := strings.Join(rep.Log, "\n"); attached && !strings.Contains(said, "the schedd of an attached pool may be elsewhere") {
				t.Errorf("the report does not say why it is not reached directly:\n%s", said)
			}
		})
	}
}
