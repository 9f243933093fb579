package ssh

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral/gridsite"
)

// methods returns the login methods in the order in which they are tried: keys first, then questions, but only if a
// person can answer them. Otherwise the questions would fail, and each uses up one of the server's permitted tries.
func (k *keyring) methods() []ssh.AuthMethod {
	methods := []ssh.AuthMethod{ssh.PublicKeys(k.keys...)}
	if k.ask != nil {
		methods = append(methods, ssh.KeyboardInteractive(k.challenge), ssh.PasswordCallback(k.password))
	}
	return methods
}

// notice records the methods that the server offered after a failed try, and selects none itself. explain uses them to
// decide whether a person could log in.
func (k *keyring) notice(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	k.offered = append(k.offered, c.AllowedMethods...)
	return nil, nil
}

// put asks a person. The clock of the login is stopped in the meantime, and then restarts with its full time, because
// the server has just answered.
func (k *keyring) put(q gridsite.Question) ([]string, error) {
	k.clock.Stop()
	defer k.clock.Reset(k.dialer.timing.dial)
	answers, err := k.ask(k.ctx, q)
	if err == nil && len(answers) != len(q.Prompts) {
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(q.Prompts))
	}
	return answers, err
}

// challenge forwards the questions of keyboard-interactive. A server may send a round without questions to show a text,
// which needs no answer and is not shown.
func (k *keyring) challenge(name, instruction string, prompts []string, echos []bool) ([]string, error) {
	if len(prompts) == 0 {
		return nil, nil
	}
	q := gridsite.Question{Name: k.who(), Instruction: strings.TrimSpace(gridsite.Printable(name + "\n" + instruction))}
	for i, p := range prompts {
		q.Prompts = append(q.Prompts, gridsite.Prompt{Text: gridsite.Printable(p), Echo: echos[i]})
	}
	answers, err := k.put(q)
	return answers, k.unanswered(err)
}

// password asks for a password. It is the last method, because a server with keyboard-interactive asks for the password
// in that way, in its own words.
func (k *keyring) password() (string, error) {
	prompt := gridsite.Prompt{Text: k.who() + "'s password: "}
	answers, err := k.put(gridsite.Question{Name: k.who(), Prompts: []gridsite.Prompt{prompt}})
	if err != nil {
		return "", k.unanswered(err)
	}
	return answers[0], nil
}

// who returns the user and host to display with a question, because a login may involve several hosts.
func (k *keyring) who() string { return k.hop.user + "@" + k.hop.host }

// unanswered records that a question was not answered.
func (k *keyring) unanswered(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("its question was not answered: %w", err)
	k.problems, k.stuck = append(k.problems, err), true
	return err
}

// explain adds the methods and keys tried to the error of a login that the server denied. Package ssh has no error type
// for this, only these words. If the server closes the connection earlier, the case is different: sshd does so if there
// are too many logins, or a firewall rejects this machine.
func (k *keyring) explain(err error) error {
	denied := strings.Contains(err.Error(), "unable to authenticate") ||
		strings.Contains(err.Error(), "Too many authentication failures")
	switch {
	case denied || k.stuck:
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s hung up before the login: it may have too many logins now, or reject this machine: %w",
			k.hop.address(), err)
	default:
		return fmt.Errorf("%s: %w", k.hop.address(), err)
	}
	e := &gridsite.LoginError{User: k.hop.user, Address: k.hop.address(), Tried: k.tried, Expired: k.expired,
		Problems: k.problems, Err: err}
	asks := slices.Contains(k.offered, "keyboard-interactive") || slices.Contains(k.offered, "password")
	e.Answerable = k.stuck || asks
	switch {
	case asks && k.ask == nil:
		e.Problems = append(e.Problems, errors.New("it asks for a password or a code"))
	case asks && !k.stuck:
		e.Problems = append(e.Problems, errors.New("it did not accept the answers"))
	}
	return e
}
