package ssh

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// deaf is a connection that opens no channel and returns no error. Package ssh's connection behaves in this way while
// it is being lost: the request is registered after the open requests have failed, and is sent before writing fails.
type deaf struct {
	ssh.Conn
	asked chan struct{}
}

func (d deaf) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	close(d.asked)
	select {}
}

func TestSessionOnALostConnection(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	c := &connection{clients: []*ssh.Client{{Conn: deaf{asked: asked}}}, lost: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		_, err := c.session(t.Context())
		opened <- err
	}()
	<-asked
	close(c.lost)
	select {
	case err := <-opened:
		if err == nil {
			t.Error("a lost connection opened a session")
		}
	case <-time.After(3 * time.Minute):
		t.Error("a session on a lost connection waits forever")
	}
}
