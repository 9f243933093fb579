//go:build sites

package pilot_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// Even if corrald can reach a node, an attached schedd elsewhere may be unable to: jobs must arrive without a direct
// connection to the node.
func TestCondorWorkerOfAnAttachedPoolIsReachedByItsBroker(t *testing.T) {
	t.Parallel()
	for name, attached := range map[string]bool{"the pool is ours": false, "it is attached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Condor.Broker, p.Condor.Attached = corral.BrokerAuto, attached })
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

// A pilot leaves on request without waiting for the end of a negotiation, which would last for a minute here.
func TestCondorPilotLeavesWhileItNegotiates(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Condor.Collector = deafPort(t) })
	r := place.start()
	eventually(t, "its link", func() bool {
		s.dispatcher.Leave(7)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.holder != ""
	})
	eventually(t, "word that it is to leave", func() bool { s.dispatcher.Leave(7); return len(r.exit) > 0 })
	rep := r.report(0, corral.OutcomeRemoved, false)
	if slices.ContainsFunc(rep.Log, func(l string) bool { return strings.Contains(l, "broker: ") }) {
		t.Errorf("it did not leave before it had a choice: %q", rep.Log)
	}
}

// A site may allow incoming connections at some ports only.
func TestCondorWorkerListensAtThePortsOfItsSite(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Condor.Broker = corral.BrokerAuto })
	const low, high = 12000, 12099 // neither a pool's nor an outgoing connection's ports
	r := place.startUnder("env", fmt.Sprintf("GLOBUS_TCP_PORT_RANGE=%d,%d", low, high), program, "run", "--dir", place.dir)
	place.inPool(1)
	place.job("sleep 1000", 2)
	place.executing(2)
	heard := map[string]bool{} // programs that listen
	forJobs := place.chirpPorts()
	for _, pid := range below(place.root) {
		for _, port := range listening(t, pid) {
			name := filepath.Base(commandLine(pid))
			heard[strings.Fields(name)[0]] = true
			if (port < low || port > high) && !slices.Contains(forJobs, port) {
				t.Errorf("%s listens at %d, want a port from %d to %d", name, port, low, high)
			}
		}
	}
	if !heard["condor_startd"] || !heard["condor_starter"] {
		t.Errorf("%v listen, want startd and starter among them", heard)
	}
	s.dispatcher.Leave(7)
	rep := r.report(0, corral.OutcomeRemoved, false)
	reached := regexp.MustCompile("reached this node at 127.0.0.1:120[0-9]{2};")
	if said := strings.Join(rep.Log, "\n"); !reached.MatchString(said) {
		t.Errorf("it was not dialled at a port of its site:\n%s", said)
	}
}

// chirpPorts returns the ports at which starters listen to their own jobs, on the loopback address only.
func (s site) chirpPorts() (ports []int) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "scratch", "*", "condor", "execute", "dir_*", ".chirp.config"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		var host, cookie string
		var port int
		b, err := os.ReadFile(file)
		if err == nil {
			_, err = fmt.Sscan(string(b), &host, &port, &cookie)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// listening returns the ports at which a process listens.
func listening(t *testing.T, pid int) (ports []int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	byInode := map[string]int{}
	for _, line := range strings.Split(string(table), "\n")[1:] {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" { // not a listening socket
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		byInode["socket:["+f[9]+"]"] = int(port)
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, _ := os.ReadDir(dir) // the process may have ended
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && byInode[to] != 0 {
			ports = append(ports, byInode[to])
		}
	}
	return ports
}

// deafPort returns an address that does not answer connections, because its listener's queue is full.
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
	nc, err := net.DialTimeout("tcp", address, patience) // the queue has room for one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if nc, err := net.DialTimeout("tcp", address, 100*time.Millisecond); err == nil {
		nc.Close()
		t.Fatalf("%s answers, though its queue is full", address)
	}
	return address
}
