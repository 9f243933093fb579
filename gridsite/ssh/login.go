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

// methods are the ways to log in, in the order in which they are tried: keys first, then questions, but only where a
// person is there to answer. Without one they would fail, and each costs one of the tries that a server allows.
func (k *keyring) methods() []ssh.AuthMethod {
	methods := []ssh.AuthMethod{ssh.PublicKeys(k.keys...)}
	if k.ask != nil {
		methods = append(methods, ssh.KeyboardInteractive(k.challenge), ssh.PasswordCallback(k.password))
	}
	return methods
}

// notice remembers which methods the server offered after a try that failed. It chooses none itself. From them explain
// concludes whether a person could get in.
func (k *keyring) notice(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	k.offered = append(k.offered, c.AllowedMethods...)
	return nil, nil
}

// put asks a person; the clock of the login stands still meanwhile. It starts with its full time again afterwards: the
// server has just shown that it is there.
func (k *keyring) put(q gridsite.Question) ([]string, error) {
	k.clock.Stop()
	defer k.clock.Reset(k.dialer.timing.dial)
	answers, err := k.ask(k.ctx, q)
	if err == nil && len(answers) != len(q.Prompts) {
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(q.Prompts))
	}
	return answers, err
}

// challenge passes the questions of keyboard-interactive on. A server may send a round without a question, to show a
// text; there is nothing to answer then, and the text is not worth a person's attention.
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

// password asks for a password, the last method that is tried: a server that has keyboard-interactive asks for the same
// there, in its own words.
func (k *keyring) password() (string, error) {
	prompt := gridsite.Prompt{Text: k.who() + "'s password: "}
	answers, err := k.put(gridsite.Question{Name: k.who(), Prompts: []gridsite.Prompt{prompt}})
	if err != nil {
		return "", k.unanswered(err)
	}
	return answers[0], nil
}

// who is the user and host that a question is about, since there may be several hosts on the way.
func (k *keyring) who() string { return k.hop.user + "@" + k.hop.host }

// unanswered notes that a question got no answer.
func (k *keyring) unanswered(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("its question was not answered: %w", err)
	k.problems, k.stuck = append(k.problems, err), true
	return err
}

// explain adds to the error of a login what was tried, if the server said no. Package ssh has no type for that, only
// these words. A server that hangs up before is another thing: sshd does so when too many logins are under way, or when
// a firewall lets nobody in.
func (k *keyring) explain(err error) error {
	denied := strings.Contains(err.Error(), "unable to authenticate") ||
		strings.Contains(err.Error(), "Too many authentication failures")
	switch {
	case denied || k.stuck:
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s hangs up before the login: it may have too many at once, or let in nobody from here: %w",
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
		e.Problems = append(e.Problems, errors.New("it did not take the answers"))
	}
	return e
}
