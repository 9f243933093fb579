package ssh_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// serveSSH opens a transport to an ssh server in this process, which accepts every user and runs commands as sshd does:
// each below the login shell, in a session of its own. Tests with OpenSSH's server have the tag sites.
func serveSSH(t *testing.T) *ssh.Conn {
	t.Helper()
	g := keepGate(t, &xssh.ServerConfig{NoClientAuth: true})
	g.serve = runSession
	conn := g.open(t)
	conn.SetPatience(2 * time.Minute) // a machine may be busy with other tests
	return conn
}

// runSession runs one command for a client. It sends the exit status when the command has ended; the channel stays open
// as long as background processes may write to it, or until the client closes it.
func runSession(c xssh.Channel, requests <-chan *xssh.Request, line string) {
	go xssh.DiscardRequests(requests)
	cmd := exec.Command("sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	stdout, outErr := cmd.StdoutPipe()
	stderr, errErr := cmd.StderrPipe()
	if err := errors.Join(outErr, errErr, cmd.Start()); err != nil {
		_ = c.Close()
		return
	}
	go func() {
		_, _ = io.Copy(stdin, c)
		_ = stdin.Close()
	}()
	var output sync.WaitGroup
	output.Go(func() { copyOut(c, stdout) })
	output.Go(func() { copyOut(c.Stderr(), stderr) })
	ended, err := cmd.Process.Wait()
	if err == nil {
		_, _ = c.SendRequest("exit-status", false, xssh.Marshal(struct{ Status uint32 }{status(ended)}))
	}
	output.Wait()
	_ = c.Close()
}

// copyOut closes the pipe when the client is gone, which the command notices by SIGPIPE.
func copyOut(to io.Writer, from io.ReadCloser) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
}

// status returns a command's exit status as reported by a shell.
func status(ended *os.ProcessState) uint32 {
	if w := ended.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + uint32(w.Signal())
	}
	return uint32(ended.ExitCode())
}

// Batch fork over ssh, with one connection for all tests.
func TestForkOverSSH(t *testing.T) {
	t.Parallel()
	conn := serveSSH(t)
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return gridsitetest.OpenFork(t, conn) })
}

func TestSSHRefusesArgv(t *testing.T) {
	t.Parallel()
	conn, err := ssh.New("ssh://127.0.0.1:1", ssh.Options{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{nil, {"echo", "a\x00b"}, {"echo", strings.Repeat("x", 128<<10)}} {
		if _, err := conn.Run(t.Context(), gridsite.Command{Argv: argv}); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Run(%.20q) = %v, want it invalid", argv, err)
		}
	}
}
