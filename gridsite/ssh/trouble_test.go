package ssh_test

import (
	"crypto/ed25519"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// These tests cover servers and agents that misbehave.

// listen accepts connections and passes them to serve.
func listen(t *testing.T, network, address string, serve func(net.Conn)) (at string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

func sshTo(t *testing.T, address string) *ssh.Conn {
	t.Helper()
	conn, err := ssh.New("ssh://"+address, ssh.Options{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Only the caller of a login waits for a server that sends nothing, and closing ends the wait.
func TestSSHSilentServer(t *testing.T) {
	t.Parallel()
	knocked := make(chan net.Conn, 1)
	conn := sshTo(t, listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { knocked <- c }))
	ran := make(chan error, 1)
	go func() {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		ran <- err
	}()
	defer (<-knocked).Close()
	asked := time.Now()
	if conn.Stands() {
		t.Error("it stands")
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ran; corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "the connection was closed") {
		t.Errorf("Run = %v, want that it was closed", err)
	}
	if took := time.Since(asked); took > gridsitetest.Patience {
		t.Errorf("they waited %v for the login of another", took)
	}
}

// A server may have too many logins at the same time.
func TestSSHServerHangsUp(t *testing.T) {
	t.Parallel()
	address := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { c.Close() })
	err := sshTo(t, address).Connect(t.Context(), false)
	if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), address+" hung up before the login") {
		t.Errorf("Connect = %v, want who hung up", err)
	}
}

// A server may accept a login that it cannot serve.
func TestSSHServerClosesAcceptedLogin(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := xssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &xssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	address := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		defer c.Close()
		_, channels, requests, err := xssh.NewServerConn(c, config)
		if err == nil {
			go xssh.DiscardRequests(requests)
			<-channels
		}
	})
	conn := sshTo(t, "ann@"+address)
	if err := conn.Connect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), address+" lets ann in and then ends the connection") {
		t.Errorf("Run = %v, want who ended it", err)
	}
}

// A command's output is complete even if the connection is so slow that much of the output arrives after the exit
// status.
func TestSSHOutputAfterTheExit(t *testing.T) {
	t.Parallel()
	g := keepGate(t, &xssh.ServerConfig{NoClientAuth: true})
	g.serve = func(c xssh.Channel, _ <-chan *xssh.Request, line string) {
		mark := strings.Fields(line[strings.Index(line, "echo "):])[1]
		mark = strings.TrimSuffix(mark, ";")
		_, _ = io.WriteString(c.Stderr(), mark+" 1\n")
		_, _ = io.WriteString(c, mark+"\n1")
		_, _ = c.SendRequest("exit-status", false, xssh.Marshal(struct{ Status uint32 }{0}))
		for _, more := range "23456789" { // longer in total than a silence is tolerated
			<-time.After(300 * time.Millisecond)
			_, _ = io.WriteString(c, string(more))
		}
		c.Close()
	}
	conn := g.open(t)
	gridsitetest.Until(t, "all of the output", func() bool { // on a busy machine the server may be silent for too long
		res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		if err != nil {
			t.Fatalf("Run = %+v, %v", res, err)
		}
		return string(res.Stdout) == "123456789"
	})
}
