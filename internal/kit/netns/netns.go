// Package netns provides tests with two hosts and firewalls between them: a pool and a node, each in its own network
// namespace, behind its own router.
//
//	pool ── router ── 198.18.0.0/24 ── router ── node
//
// A namespace has no name: it exists as long as a process that ends when the test's process ends for any reason, so
// nothing is left behind. The tests need not run as root where users may create namespaces.
//
// The addresses are those of RFC 2544, which are reserved for tests and are not routed; a side behind NAT has a private
// net (10.81, 10.82) to which the other side has no route. A test runs a program on a host with Host.Command. The
// program in testdata/door is for programs that must be started from outside, without the rights required to enter a
// namespace.
package netns

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A Topology describes the firewalls between the pool and the node.
type Topology string

// The effect of a firewall, or of a router with private addresses, on connections between the two sides.
const (
	OneNet    Topology = "one net"         // each side reaches the other
	NodeDrops Topology = "node drops"      // the node's firewall drops unsolicited packets
	NodeNAT   Topology = "node behind NAT" // the node has a private address
	PoolNAT   Topology = "pool behind NAT" // the pool has a private address
	BothNAT   Topology = "both behind NAT" // both have private addresses
)

// A Host is a network namespace with one address, in addition to loopback.
type Host struct {
	Addr netip.Addr
	pid  int    // of the process that holds it
	user string // nsenter's option for its user namespace; empty for root
}

// New creates a pool and a node, which last until the end of the test.
func New(t testing.TB, topology Topology) (pool, node *Host) {
	t.Helper()
	for tool, pkg := range map[string]string{
		"ip": "iproute2", "nft": "nftables", "unshare": "util-linux", "nsenter": "util-linux",
	} {
		_, err := exec.LookPath(tool)
		if _, sbin := exec.LookPath("/usr/sbin/" + tool); err != nil && sbin != nil {
			t.Fatalf("network namespaces need %s on PATH (apt-get install %s)", tool, pkg)
		}
	}
	pool = hold(t, nil)
	node = hold(t, pool)
	poolRouter, nodeRouter := hold(t, pool), hold(t, pool)
	wire(t, poolRouter, nodeRouter)
	// Each router has a route to the other side's network. A network behind NAT cannot be reached from the other side.
	poolSide := side{prefix: "198.18.1", other: "198.18.2.0/24 via 198.18.0.2"}
	nodeSide := side{prefix: "198.18.2", other: "198.18.1.0/24 via 198.18.0.1"}
	if topology == PoolNAT || topology == BothNAT {
		poolSide.prefix, poolSide.nat = "10.81.0", true
	}
	if topology == NodeNAT || topology == BothNAT {
		nodeSide.prefix, nodeSide.nat = "10.82.0", true
	}
	behind(t, pool, poolRouter, poolSide)
	behind(t, node, nodeRouter, nodeSide)
	if topology == NodeDrops {
		node.script(t, dropIncoming)
	}
	return pool, node
}

// Command returns a command that runs on the host. Its Cancel kills only the command itself, as usual in os/exec.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(h.pid), "--net"}
	if h.user != "" {
		enter = append(enter, h.user, "--preserve-credentials")
	}
	return exec.CommandContext(ctx, "nsenter", append(append(enter, "--", name), args...)...)
}

// UserCommand is Command for a user who is not root on the host: the user nobody if the test runs as root, otherwise
// the test's own user.
func (h *Host) UserCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	if h.user != "" {
		me, group := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
		as := []string{"--user", "--map-user=" + me, "--map-group=" + group, "--", name}
		return h.Command(ctx, "unshare", append(as, args...)...)
	}
	as := []string{"--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", name}
	return h.Command(ctx, "setpriv", append(as, args...)...)
}

// Path returns the path of the namespace in /proc.
func (h *Host) Path() string { return "/proc/" + strconv.Itoa(h.pid) + "/ns/net" }

// hold creates a namespace. If the user is not root, the first one of a test has its own user namespace, in which the
// test is root and to which all others belong.
func hold(t testing.TB, first *Host) *Host {
	t.Helper()
	const wait = "echo; exec cat" // until its input ends, which happens when this process ends
	h := &Host{}
	args := []string{"unshare", "--net", "--", "sh", "-c", wait}
	switch {
	case os.Geteuid() == 0:
	case first == nil:
		args = []string{"unshare", "--user", "--map-root-user", "--net", "--", "sh", "-c", wait}
	default:
		target := strconv.Itoa(first.pid)
		args = append([]string{"nsenter", "--target", target, "--user", "--preserve-credentials", "--"}, args...)
	}
	if os.Geteuid() != 0 {
		h.user = "--user"
	}
	cmd := exec.Command(args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// The process writes a byte when it is in its namespace; if it may not create a namespace, it ends before that.
	if _, err := bufio.NewReader(stdout).ReadByte(); err != nil {
		said, _ := io.ReadAll(&stderr)
		t.Fatalf("no network namespace can be made here (%s): run this test as root, "+
			"or where users may make namespaces", strings.TrimSpace(string(said)))
	}
	h.pid = cmd.Process.Pid
	return h
}

// script runs shell commands on the host.
func (h *Host) script(t testing.TB, lines string) {
	t.Helper()
	cmd := h.Command(context.Background(), "sh", "-eu")
	cmd.Stdin = strings.NewReader("PATH=$PATH:/usr/sbin\n" + lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("setting up a network namespace: %v\n%s", err, out)
	}
}

// wire connects the two routers with a pair of virtual interfaces, one end in each namespace.
func wire(t testing.TB, poolRouter, nodeRouter *Host) {
	t.Helper()
	poolRouter.script(t, "ip link add out type veth peer name out netns "+strconv.Itoa(nodeRouter.pid)+`
ip addr add 198.18.0.1/24 dev out
ip link set out up`)
	nodeRouter.script(t, `ip addr add 198.18.0.2/24 dev out
ip link set out up`)
}

// A side describes the network of one of the two hosts.
type side struct {
	prefix string // of the net between the host and its router
	other  string // route to the other side; private nets have none
	nat    bool
}

// behind connects h with its router, which forwards packets and has a route to the other side.
func behind(t testing.TB, h, router *Host, s side) {
	t.Helper()
	h.Addr = netip.MustParseAddr(s.prefix + ".2")
	router.script(t, "ip link add in type veth peer name eth0 netns "+strconv.Itoa(h.pid)+`
ip addr add `+s.prefix+`.1/24 dev in
ip link set in up
ip route add `+s.other+`
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 0 > /proc/sys/net/ipv4/icmp_ratelimit`) // it reports every missing route
	h.script(t, `ip link set lo up
ip addr add `+s.prefix+`.2/24 dev eth0
ip link set eth0 up
ip route add default via `+s.prefix+`.1`)
	if s.nat {
		router.script(t, masquerade)
	}
}

// dropIncoming is a node's own firewall: it drops packets of connections that the node did not open.
const dropIncoming = `nft -f - <<'END'
table inet corral {
	chain incoming {
		type filter hook input priority 0; policy drop
		iif lo accept
		ct state established,related accept
	}
}
END`

// masquerade makes a router perform NAT: connections from its network use the router's own address, and incoming
// connections are dropped.
const masquerade = `nft -f - <<'END'
table ip corral {
	chain source {
		type nat hook postrouting priority 100
		oifname "out" masquerade
	}
	chain through {
		type filter hook forward priority 0; policy drop
		ct state established,related accept
		iifname "in" accept
	}
}
END`
