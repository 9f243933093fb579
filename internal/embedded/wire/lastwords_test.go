package wire

import (
	"net"
	"path/filepath"
	"testing"
)

// A peer that leaves sends a message and closes. The message is received even if the answer to an earlier message
// cannot be sent because the connection is closed; otherwise a worker that left properly would be missed until its
// lease expires.
func TestLastMessageIsReceived(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"unix", "tcp"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(t.TempDir(), "s")
		}
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		theirs, err := net.Dial(network, ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ours, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		peer := NewConn(theirs)
		peer.Send(&Message{Type: TypeHeartbeat, N: 1})
		peer.Send(&Message{Type: TypeBye, Reason: "drained"})
		peer.Finish()
		c := NewConn(ours)
		defer c.Close()
		for broken := false; !broken; {
			c.Send(&Message{Type: TypePong, N: 1})
			select {
			case <-c.done:
				broken = true
			default:
			}
		}
		for _, want := range []string{TypeHeartbeat, TypeBye} {
			if m, err := c.Recv(MaxFrame); err != nil || m.Type != want {
				t.Fatalf("%s: received %+v, %v, want %s", network, m, err, want)
			}
		}
	}
}
