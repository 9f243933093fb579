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

// A Remote is a Conn over one connection, which is established on first use and again after it was lost. Establishing
// the connection is a login, which may require a person's help. After a failed login a Remote pauses, and in the
// meantime returns the same error as a *Paused, so that a site in trouble is not burdened with repeated logins.
type Remote interface {
	// Connect logs in now, unless the connection is up, even during a pause. If no file contains the host's key and
	// acceptHostKey is set, the key is trusted and added to the user's known_hosts.
	Connect(ctx context.Context, acceptHostKey bool) error

	// Login logs in with the help of a person, unless the connection is up. Commands do not wait for the person.
	Login(ctx context.Context, ask Asker) error

	// Stands reports whether the connection is up. It does not wait for a login.
	Stands() bool

	// Lost returns a channel that is closed when the current connection ends; nil if there is no connection.
	Lost() <-chan struct{}

	// LocalIP returns the address of this machine on the route to the site, or a loopback address if there is no route.
	LocalIP() netip.Addr
}

// An Asker puts a question to a person and returns one answer per prompt.
type Asker func(ctx context.Context, q Question) ([]string, error)

// A Question requests secrets for a login: the passphrase of a key, a password, a one-time code.
type Question struct {
	Name        string // source of the question
	Instruction string // may be empty, or have several lines
	Prompts     []Prompt
}

// A Prompt is one line to be answered.
type Prompt struct {
	Text string
	Echo bool // the answer need not be hidden
}

// LoginError means that a host refused a login.
type LoginError struct {
	User, Address string
	Tried         []string                // FINGERPRINT (SOURCE)
	Expired       []credential.Credential // credentials that were not tried
	Problems      []error                 // unusable keys and unanswered questions
	Answerable    bool                    // a person could log in: the host asks, or would accept a locked key
	Err           error                   // the server's answer
}

// Error names the host and user, the likely reason, and the keys that were tried.
func (e *LoginError) Error() string {
	tried := "no key to try"
	if len(e.Tried) > 0 {
		tried = "tried " + strings.Join(e.Tried, ", ")
	}
	text := fmt.Sprintf("%s does not let %s in: ", e.Address, e.User)
	for _, c := range e.Expired { // the likely reason comes first
		text += c.Ended() + "; "
	}
	text += tried
	for _, p := range e.Problems {
		text += "; " + p.Error()
	}
	return text
}

// Unwrap returns the server's answer and the problems.
func (e *LoginError) Unwrap() []error { return append([]error{e.Err}, e.Problems...) }

// Unreached is the error for a host that could not be reached or does not use the ssh protocol. The text is the same
// for all such hosts, so that a user cannot explore the network of this machine; Err contains the reason.
type Unreached struct {
	Address string // HOST:PORT
	Err     error
}

// Error names only the address; see Unreached.
func (u *Unreached) Error() string {
	return u.Address + " does not answer, or corrald may not connect to it: " +
		"the administrator finds the reason in the log"
}

// Paused contains the reason why a site cannot be reached, and the time until which logins pause.
type Paused struct {
	Until time.Time
	Err   error
}

// Error returns the text of the failed login.
func (p *Paused) Error() string { return p.Err.Error() }
func (p *Paused) Unwrap() error { return p.Err }

// A HostKeyProblem is the reason why a host key is not trusted.
type HostKeyProblem string

const (
	HostKeyUnknown HostKeyProblem = "unknown" // no file contains a key of the host
	HostKeyChanged HostKeyProblem = "changed" // a file contains another key of the host
	HostKeyRevoked HostKeyProblem = "revoked" // a file forbids the use of the key
)

// HostKeyError means that a host key is not trusted. Nothing was sent to the host.
type HostKeyError struct {
	Problem     HostKeyProblem
	User        string   // the user of the login
	Address     string   // host:port
	Name        string   // the host's name in known_hosts
	Type        string   // type of the key shown
	Fingerprint string   // fingerprint of the key shown, as printed by ssh-keygen -l
	Certificate error    // why the host's certificate is not accepted; nil: no certificate
	Known       []string // changed, revoked: FILE:LINE FINGERPRINT
	Files       []string // files searched for a known key, the user's own first
}

// Error describes the problem and its remedy.
func (e *HostKeyError) Error() string {
	shown := fmt.Sprintf("%s shows the host key %s %s", e.Address, e.Type, e.Fingerprint)
	if e.Type == "" {
		shown = e.Address + " has no host key of a known type"
	}
	if e.Certificate != nil {
		shown += fmt.Sprintf(" (%v)", e.Certificate)
	}
	known := strings.Join(e.Known, ", ")
	switch e.Problem {
	case HostKeyUnknown:
		host, port, _ := net.SplitHostPort(e.Address)
		return fmt.Sprintf("%s, which is unknown: compare it with the key that the site publishes, then accept it"+
			" with --accept-host-key, or log in once with `ssh -p %s %s@%s`, which adds it to %s",
			shown, port, e.User, host, e.Files[0])
	case HostKeyRevoked:
		return fmt.Sprintf("%s, which is revoked in %s: do not log in there, ask the site", shown, known)
	default:
		return fmt.Sprintf("%s, but the known key is %s: someone may be intercepting the connection."+
			" If the site has changed its key, remove the old one with `ssh-keygen -R %s -f %s`",
			shown, known, shell.Quote(e.Name), shell.Quote(e.Files[0]))
	}
}
