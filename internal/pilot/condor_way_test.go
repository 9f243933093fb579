package pilot_test

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// Nobody who wants the node back waits for a negotiation.
func TestCondorPilotLeavesWhileItNegotiates(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, func(p *order.Pilot) { p.Condor.Collector = deafPort(t) })
	r := place.start()
	eventually(t, "its link", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.phases, "pilot started")
	})
	from := time.Now()
	s.dispatcher.Leave(7)
	rep := r.report(0, corral.OutcomeRemoved, false)
	if took := time.Since(from); took > time.Second || slices.ContainsFunc(rep.Log, func(l string) bool { return strings.Contains(l, "broker: ") }) {
		t.Errorf("it left after %s, want at once and without a choice: %q", took, rep.Log)
	}
}

// deafPort returns an address whose machine does not answer to those who connect: the queue of its listener is full.
func deafPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for {
		nc, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { nc.Close() })
	}
}
