package netns

import (
	"net/netip"
	"strconv"
	"testing"
)

// NewHeaded creates a pool, a head node, and a worker node that reaches only its head node. They last until the end of
// the test.
//
//	pool ── 198.18.1.0/24 ── head ── 10.82.0.0/24 ── node
//
// The head node's Addr is its address on the pool's side. The head node does not forward packets.
func NewHeaded(t testing.TB) (pool, head, node *Host) {
	t.Helper()
	pool = hold(t, nil)
	head, node = hold(t, pool), hold(t, pool)
	for _, h := range []struct {
		*Host
		link, address string
	}{{pool, "out", "198.18.1.2"}, {node, "in", "10.82.0.2"}} {
		h.Addr = netip.MustParseAddr(h.address)
		head.script(t, "ip link add "+h.link+" type veth peer name eth0 netns "+strconv.Itoa(h.pid)+`
ip link set `+h.link+" up")
		h.script(t, "ip link set lo up\nip addr add "+h.address+"/24 dev eth0\nip link set eth0 up")
	}
	head.Addr = netip.MustParseAddr("198.18.1.1")
	head.script(t, `ip link set lo up
ip addr add 198.18.1.1/24 dev out
ip addr add 10.82.0.1/24 dev in
echo 0 > /proc/sys/net/ipv4/ip_forward`)
	return pool, head, node
}
