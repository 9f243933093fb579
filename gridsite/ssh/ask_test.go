package ssh_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// A gateKeeper is a server that asks questions at login and, unless serve is set, runs no commands. OpenSSH's server
// asks questions only if it runs as root and uses PAM.
type gateKeeper struct {
	home, address string
	conns         chan net.Conn
	serve         func(c xssh.Channel, requests <-chan *xssh.Request, line string) // runs a command
}

func keepGate(t *testing.T, config *xssh.ServerConfig) *gateKeeper {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	config.AddHostKey(key)
	g := &gateKeeper{home: t.TempDir(), conns: make(chan net.Conn, 10)}
	g.address = listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		_, channels, requests, err := xssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		g.conns <- conn
		go xssh.DiscardRequests(requests)
		for c := range channels {
			go g.take(c)
		}
	})
	line := knownhosts.Line([]string{g.address}, key.PublicKey())
	if err := errors.Join(os.Mkdir(filepath.Join(g.home, ".ssh"), 0o700), os.WriteFile(filepath.Join(g.home, ".ssh", "known_hosts"), []byte(line+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return g
}

// take lets a channel run one command.
func (g *gateKeeper) take(c xssh.NewChannel) {
	if g.serve == nil {
		_ = c.Reject(xssh.Prohibited, "not here")
		return
	}
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	for r := range requests {
		var m struct{ Line string }
		err := xssh.Unmarshal(r.Payload, &m)
		_ = r.Reply(err == nil && r.Type == "exec", nil)
		if r.Type == "exec" {
			g.serve(channel, requests, m.Line)
			return
		}
	}
}

func (g *gateKeeper) open(t *testing.T) *ssh.Conn {
	t.Helper()
	conn, err := ssh.New("ssh://alice@"+g.address, ssh.Options{Home: g.home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// codes requires a password and then a code, which is valid once.
func codes(good ...string) *xssh.ServerConfig {
	return &xssh.ServerConfig{KeyboardInteractiveCallback: func(_ xssh.ConnMetadata, ask xssh.KeyboardInteractiveChallenge) (*xssh.Permissions, error) {
		if answers, err := ask("", "Welcome\x1b[2J", nil, nil); err != nil || len(answers) != 0 {
			return nil, fmt.Errorf("%v %w", answers, err)
		}
		answers, err := ask("Login", "Have your token at hand.", []string{"Password: ", "Code \x07: "}, []bool{false, true})
		if err != nil {
			return nil, err
		}
		if i := slices.Index(good, answers[1]); answers[0] == "secret" && i >= 0 {
			good = slices.Delete(good, i, i+1)
			return nil, nil
		}
		return nil, errors.New("no")
	}}
}

func answering(answers ...string) gridsite.Asker {
	return func(context.Context, gridsite.Question) ([]string, error) { return answers, nil }
}

// A host with one-time codes can be reached after a person has answered, and not again without a person.
func TestSSHLoginWithCodes(t *testing.T) {
	t.Parallel()
	g := keepGate(t, codes("111", "222"))
	conn := g.open(t)
	err := conn.Connect(t.Context(), false)
	var login *gridsite.LoginError
	if !errors.As(err, &login) || !login.Answerable || !strings.Contains(err.Error(), "it asks for a password or a code") {
		t.Fatalf("Connect = %v, want a login error that a person can help with", err)
	}
	var asked gridsite.Question
	err = conn.Login(t.Context(), func(_ context.Context, q gridsite.Question) ([]string, error) {
		asked = q
		return []string{"secret", "111"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Name != "alice@127.0.0.1" || asked.Instruction != "Login\nHave your token at hand." ||
		!slices.Equal(asked.Prompts, []gridsite.Prompt{{Text: "Password: "}, {Text: "Code : ", Echo: true}}) {
		t.Errorf("asked %+v", asked)
	}
	if err := conn.Login(t.Context(), nil); err != nil {
		t.Errorf("a second login, of a connection that stands: %v", err)
	}
	(<-g.conns).Close()
	gridsitetest.Until(t, "the lost connection to be noticed", func() bool {
		err := conn.Connect(t.Context(), false)
		return errors.As(err, &login) && login.Answerable
	})
	if err := conn.Login(t.Context(), answering("secret", "111")); !errors.As(err, &login) || !strings.Contains(err.Error(), "did not accept the answers") {
		t.Errorf("a code that was used: %v", err)
	}
	if err := conn.Login(t.Context(), answering("secret", "222")); err != nil {
		t.Error(err)
	}
}

// Commands do not wait for a person, and two persons cannot log in at the same time.
func TestSSHLoginBlocksNoCommands(t *testing.T) {
	t.Parallel()
	conn := keepGate(t, codes("111")).open(t)
	asked, answer := make(chan bool), make(chan []string)
	done := make(chan error, 1)
	go func() {
		done <- conn.Login(t.Context(), func(context.Context, gridsite.Question) ([]string, error) {
			asked <- true
			return <-answer, nil
		})
	}()
	<-asked
	if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}}); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Run = %v, want it unavailable meanwhile", err)
	}
	if err := conn.Login(t.Context(), answering()); corral.KindOf(err) != corral.Conflict {
		t.Errorf("a second login = %v, want a conflict", err)
	}
	answer <- []string{"secret", "111"}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A password is requested if no other method is offered; without an answer the login fails.
func TestSSHLoginWithPassword(t *testing.T) {
	t.Parallel()
	conn := keepGate(t, &xssh.ServerConfig{PasswordCallback: func(_ xssh.ConnMetadata, password []byte) (*xssh.Permissions, error) {
		if string(password) != "secret" {
			return nil, errors.New("no")
		}
		return nil, nil
	}}).open(t)
	gone := errors.New("nobody is there any more")
	err := conn.Login(t.Context(), func(context.Context, gridsite.Question) ([]string, error) { return nil, gone })
	if !errors.Is(err, gone) {
		t.Errorf("without an answer: %v", err)
	}
	ask, asked := person("wrong", "secret")
	var login *gridsite.LoginError
	if err := conn.Login(t.Context(), ask); !errors.As(err, &login) {
		t.Errorf("a wrong password: %v", err)
	}
	if err := conn.Login(t.Context(), ask); err != nil || (*asked)[1].Prompts[0].Text != "alice@127.0.0.1's password: " {
		t.Errorf("%v, asked %+v", err, *asked)
	}
}

// person gives one answer per question, in order, and records the questions.
func person(answers ...string) (gridsite.Asker, *[]gridsite.Question) {
	asked := new([]gridsite.Question)
	return func(_ context.Context, q gridsite.Question) ([]string, error) {
		answer := answers[min(len(*asked), len(answers)-1)]
		*asked = append(*asked, q)
		return []string{answer}, nil
	}, asked
}
