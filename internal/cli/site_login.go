package cli

// Some sites ask a person for a password, a one-time code or the passphrase of a key. corrald holds the connection and
// forwards the questions; this file asks the questions on the terminal and returns the answers, which are never stored.
//
// The terminal is /dev/tty and not stdin, so that `corral site create -f -` can read the site from a pipe and still ask
// questions.

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func (v siteVerbs) loginCommand() *cli.Command {
	return sites.verb("login",
		v.login,
		acceptHostKeyFlag())
}

// acceptHostKeyFlag is a flag for the first contact with a host. Without the flag, a key that is not in known_hosts is
// refused.
func acceptHostKeyFlag() *cli.BoolFlag {
	return &cli.BoolFlag{Name: "accept-host-key",
		Usage: "trust the key of an unknown host, and write it into known_hosts"}
}

// login makes corrald log in, and asks the user the site's questions.
func (v siteVerbs) login(c *cli.Context, cl *api.Client, ref string) error {
	s, err := cl.Site(c.Context, ref)
	if err != nil {
		return err
	}
	var who person // the terminal is opened only for a question
	defer who.close()
	n := api.NewLogin{Site: ref, AcceptHostKey: c.Bool("accept-host-key")}
	if err := cl.Login(c.Context, n, who.ask); err != nil {
		return err
	}
	v.say("corrald is logged in at %s", s.Contact)
	return nil
}

// A person represents the user who answers questions on a terminal.
type person struct {
	file  *os.File // nil: not opened yet
	lines *bufio.Reader
}

// open opens the terminal, unless it is open.
func (p *person) open() error {
	if p.file != nil {
		return nil
	}
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return corral.ErrorAt(corral.Forbidden, "login", "there is no terminal for questions: "+
			"run the command on one, or start corrald with an ssh agent that has the key")
	}
	p.file, p.lines = file, bufio.NewReader(file)
	return nil
}

// close closes the terminal if it was opened.
func (p *person) close() {
	if p.file != nil {
		_ = p.file.Close() // an error does not matter, because no more output is written
	}
}

// ask asks the person the questions of a site.
func (p *person) ask(ctx context.Context, q api.LoginQuestion) ([]string, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	for _, text := range []string{q.Name, q.Instruction} {
		if text != "" {
			fmt.Fprintln(p.file, printable(text))
		}
	}
	var answers []string
	for _, prompt := range q.Prompts {
		answer, err := answerTo(ctx, p.file, p.lines, prompt)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// answerTo shows a prompt and reads a line, without echo if it is a secret. After an interrupt it restores the
// terminal.
func answerTo(ctx context.Context, tty *os.File, lines *bufio.Reader, prompt api.LoginPrompt) (string, error) {
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("looking at the terminal: %w", err)
	}
	type line struct {
		text string
		err  error
	}
	fmt.Fprint(tty, printable(prompt.Text))
	read := make(chan line, 1)
	if !prompt.Echo {
		if err := hide(fd); err != nil {
			return "", fmt.Errorf("hiding what is typed: %w", err)
		}
		defer fmt.Fprintln(tty)
		defer term.Restore(fd, before)
	}
	go func() {
		text, err := lines.ReadString('\n')
		read <- line{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case l := <-read:
		if l.err != nil {
			l.err = corral.Errorf(corral.Failed, "the terminal gave no answer: %w", l.err)
		}
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// hide disables a terminal's echo. term.ReadPassword would also do this, but ignores the end of input (Ctrl-D).
func hide(fd int) error {
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	settings.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, settings)
}

// printable removes the control characters from a remote host's text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
