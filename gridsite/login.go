package gridsite

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// A Remote is a Conn over one connection, which is made at its first use and made again when it was lost. Making it is
// a login: it may need a person's help. After a login that failed it makes a pause and says the same again meanwhile,
// as a *Paused: a site in trouble is not pressed.
type Remote interface {
	// Connect logs in now, unless the connection stands, without regard to failures before. If the host is one that no
	// file knows, and acceptHostKey is set, its key is taken for its own and written into the user's known_hosts.
	Connect(ctx context.Context, acceptHostKey bool) error

	// Login logs in with the help of a person, unless the connection stands. Commands do not wait for the person.
	Login(ctx context.Context, ask Asker) error

	// Stands reports whether there is a connection. It does not wait for a login.
	Stands() bool

	// Lost is closed when the connection that stands has ended; nil if there is none.
	Lost() <-chan struct{}

	// LocalIP is the address that this machine has on the way to the site; a loopback address if there is none.
	LocalIP() netip.Addr
}

// An Asker puts a question to a person and returns an answer to each of its prompts.
type Asker func(ctx context.Context, q Question) ([]string, error)

// A Question is what a login needs to be told: the passphrase of a key, a password, a one-time code.
type Question struct {
	Name        string // who asks
	Instruction string // may be empty, or have several lines
	Prompts     []Prompt
}

// A Prompt is one line to be answered.
type Prompt struct {
	Text string
	Echo bool // the answer need not be hidden
}

// LoginError is a host that did not let us in.
type LoginError struct {
	User, Address string
	Tried         []string                // FINGERPRINT (where from)
	Expired       []credential.Credential // that were not tried
	Problems      []error                 // with keys that could not be used, and with questions that were not answered
	Answerable    bool                    // a person could get in: the host asks questions, or would take a locked key
	Err           error                   // the server's answer
}

func (e *LoginError) Error() string {
	tried := "no key to try"
	if len(e.Tried) > 0 {
		tried = "tried " + strings.Join(e.Tried, ", ")
	}
	text := fmt.Sprintf("%s does not let %s in: ", e.Address, e.User)
	for _, c := range e.Expired { // it is the likely reason, so it comes first
		text += c.Ended() + "; "
	}
	text += tried
	for _, p := range e.Problems {
		text += "; " + p.Error()
	}
	return text
}

func (e *LoginError) Unwrap() []error { return append([]error{e.Err}, e.Problems...) }

// Unreached is a host that no connection reached, or that does not speak ssh. It says the same of all of them, so that
// a user cannot explore the network of the machine that connects; Err has the reason.
type Unreached struct {
	Address string // HOST:PORT
	Err     error
}

func (u *Unreached) Error() string {
	return u.Address + " does not answer, or corrald does not connect with it: " +
		"its administrator sees the reason in the log"
}

// Paused is why a site is not reached, and until when it is not tried again.
type Paused struct {
	Until time.Time
	Err   error
}

func (p *Paused) Error() string { return p.Err.Error() }
func (p *Paused) Unwrap() error { return p.Err }

// A HostKeyProblem says what is wrong with a host key.
type HostKeyProblem string

const (
	HostKeyUnknown HostKeyProblem = "unknown" // no file knows the host
	HostKeyChanged HostKeyProblem = "changed" // a file knows it by another key
	HostKeyRevoked HostKeyProblem = "revoked" // a file says that the key must not be used
)

// HostKeyError is a host key that is not trusted. Nothing was sent to the host.
type HostKeyError struct {
	Problem     HostKeyProblem
	User        string   // who wanted to log in
	Address     string   // host:port
	Name        string   // of the host in known_hosts
	Type        string   // of the key shown
	Fingerprint string   // of the key shown, as ssh-keygen -l prints it
	Certificate error    // why the certificate that was shown does not count; nil: there was none
	Known       []string // changed, revoked: FILE:LINE FINGERPRINT
	Files       []string // where a known key would be looked for, the user's own file first
}

func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s shows the host key %s %s", e.Address, e.Type, e.Fingerprint)
	if e.Type == "" {
		shown = e.Address + " has no host key of a type that is known"
	}
	if e.Certificate != nil {
		shown += fmt.Sprintf(" (%v)", e.Certificate)
	}
	known := strings.Join(e.Known, ", ")
	switch e.Problem {
	case HostKeyUnknown:
		host, port, _ := net.SplitHostPort(e.Address)
		return fmt.Sprintf("%s, which is not known: compare it with what the site publishes, then accept it"+
			" with --accept-host-key, or log in once with `ssh -p %s %s@%s`, which adds it to %s",
			shown, port, e.User, host, e.Files[0])
	case HostKeyRevoked:
		return fmt.Sprintf("%s, which is revoked in %s: do not log in there, ask the site", shown, known)
	default:
		return fmt.Sprintf("%s, but known is %s: somebody may be in between. If the site says that its key is new,"+
			" remove the old one with `ssh-keygen -R %s -f %s`",
			shown, known, shell.Quote(e.Name), shell.Quote(e.Files[0]))
	}
}
