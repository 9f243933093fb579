// Package ssh implements the transport to a site with an sshd: one connection, over which all of the site's commands
// run.
//
//	Conn ── sessions: which command may have a session, and when
//	  └─ link: the current connection, and the pause after a failed login
//	      └─ dialer: logs in at one host after the other, with the user's keys, agent, known_hosts and ssh_config
//
// New returns the Conn of a site. It is a gridsite.Conn and implements the optional interfaces Remote, Streamer and
// Bearer.
//
// A login does what the user's own ssh would do: ssh itself reads the configuration (config.go), keys and certificates
// are tried in its order (keys.go), and its files determine which hosts are trusted (hostkeys.go). Questions go to the
// person who requested the login; a lost connection is restored without a person.
//
// A command is one line for any login shell of the user's (line.go). Its output begins after a random mark; earlier
// output was printed by the login shell. Run (run.go) collects the command's output; Stream (stream.go) passes it on
// while the command runs.
//
// A command that was not sent is corral.Unavailable, with a *HostKeyError or *LoginError of package gridsite in its
// chain if a person must act; a command that was sent and did not report its end is corral.Unknown. ADR 34 explains the
// reasons.
package ssh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// Options are the settings of the user, as opposed to those of the site.
type Options struct {
	Home        string       // folder of .ssh; empty: the user's home directory
	AgentSocket string       // socket of an ssh-agent; empty: none
	Log         *slog.Logger // receives one warning about unsupported ssh settings; may be nil

	// Dial connects with the first host, at HOST:PORT; nil: without restrictions. If it is set, the user is not trusted
	// with this machine's network: a failure before the host shows its key is a *gridsite.Unreached, whose reason is
	// logged.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Conn is the transport to one site. At most 8 commands run concurrently over its one connection; others wait. It
// reconnects automatically when a command needs the site, if that requires no person.
type Conn struct {
	site     site
	link     link
	sessions sessions
	timing   *timing
}

// A site is the contact with which the user names the site. Every error begins with this contact.
type site string

// unavailable returns the error for a request that did not reach the site.
func (s site) unavailable(format string, args ...any) error {
	return corral.ErrorAt(corral.Unavailable, string(s), format, args...)
}

// timing contains the times that tests shorten: for one login; for an answer of the agent; between two keepalives, and
// for the answer to a keepalive; for a server that admits no session; for a kill; and the pauses between logins, the
// last of which applies if a person must act.
type timing struct {
	dial, agent, keepalive, answer, refused, kill, minPause, maxPause, loginPause time.Duration
}

// New returns the transport to contact, which is ssh://[user@]host[:port]. It opens no connection. ~/.ssh/config is
// read for each connection, and also by New, so that an unsupported configuration is reported early.
func New(contact string, options Options) (*Conn, error) {
	to, err := gridsite.ParseContact(contact)
	if err != nil {
		return nil, err
	}
	if to.Transport != "ssh" {
		return nil, corral.ErrorAt(corral.Invalid, "contact", "%q: want ssh://[user@]host[:port]", contact)
	}
	if options.Home == "" {
		if options.Home, err = os.UserHomeDir(); err != nil {
			return nil, corral.Errorf(corral.Invalid, "no home directory to read .ssh/config from: %w", err)
		}
	}
	c := &Conn{site: site(contact), timing: &timing{
		dial: 30 * time.Second, agent: 10 * time.Second, keepalive: 15 * time.Second, answer: 45 * time.Second,
		refused: 30 * time.Second, kill: 5 * time.Second, minPause: time.Second, maxPause: time.Minute,
		loginPause: 5 * time.Minute,
	}}
	c.link = link{
		site: c.site, timing: c.timing, turn: make(chan struct{}, 1), asking: make(chan struct{}, 1),
		dialer: dialer{to: address{to.User, to.Host, to.Port}, options: options, timing: c.timing},
	}
	c.link.life, c.link.end = context.WithCancel(context.Background())
	c.sessions = sessions{site: c.site, link: &c.link, timing: c.timing, gate: make(chan struct{}, maxSessions),
		freed: make(chan struct{}, 1)}
	if _, _, err := c.link.dialer.route(context.Background()); err != nil {
		return nil, err
	}
	return c, nil
}

// Run runs the command through the user's login shell, regardless of which shell it is and of its initial output. When
// ctx ends, the command's process group is killed.
//
// If a command was sent but did not report its end, the error is of kind Unknown: the command may have had any effect.
// If the login shell did not reach the command in time, the error is also Unknown, because the shell may still
// reach the command.
func (c *Conn) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	mark := rand.Text()
	line, err := remoteLine(mark, cmd.Argv)
	if err != nil {
		return gridsite.Result{}, err
	}
	ch, err := c.sessions.open(ctx)
	if err != nil {
		return gridsite.Result{}, err
	}
	defer c.sessions.leave(ch)
	runCtx, e := startExecution(ctx, ch, mark)
	defer e.fail(nil)
	type outcome struct {
		res gridsite.Result
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		res, err := e.perform(line, cmd.Stdin)
		ended <- outcome{res, err}
	}()
	shell := time.AfterFunc(c.timing.dial, func() {
		if !e.hasBegun() {
			e.fail(noShell(c.timing.dial))
		}
	})
	defer shell.Stop()
	var o outcome
	select {
	case o = <-ended:
	case <-runCtx.Done():
		e.end(c.timing.kill)
	}
	if runCtx.Err() != nil {
		o.err = corral.Errorf(corral.Unknown, "%w", context.Cause(runCtx))
	}
	if o.err != nil {
		return gridsite.Result{}, fmt.Errorf("%s: running %s: %w", c.site, cmd.Argv[0], o.err)
	}
	return o.res, nil
}

const (
	writeScript  = `umask 077; set -C; cat >"$1"`
	finishScript = `{ [ ! -d "$3" ] || { echo "$3: Is a directory" >&2; exit 1; }; } &&
		chmod "$2" "$1" && mv -f -- "$1" "$3"`
)

// Put writes to a temporary file in the same directory, which it renames once it is complete. A lost connection leaves
// a file named .corral-put-* .
func (c *Conn) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	tmp := filepath.Join(filepath.Dir(path), ".corral-put-"+rand.Text())
	err := c.script(ctx, r, writeScript, tmp)
	if err == nil {
		err = c.script(ctx, nil, finishScript, tmp, strconv.FormatUint(uint64(mode.Perm()), 8), path)
	}
	if err == nil {
		return nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timing.kill)
	defer cancel()
	if left := c.script(cleanup, nil, `rm -f "$1"`, tmp); left != nil {
		err = errors.Join(err, left)
	}
	return fmt.Errorf("writing %s: %w", path, err)
}

// script runs a shell script whose output matters only if it fails.
func (c *Conn) script(ctx context.Context, stdin io.Reader, script string, args ...string) error {
	res, err := c.Run(ctx, gridsite.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: stdin})
	if err == nil && res.Exit != 0 {
		return corral.Errorf(corral.Failed, "%s: exit status %d: %s", c.site, res.Exit, gridsite.LastLine(res.Stderr))
	}
	return err
}

// LocalIP returns the address of this machine on the route to the site or to its first jump host. Pilots of a site in
// the same network as this machine can connect to this address.
func (c *Conn) LocalIP() netip.Addr {
	if conn := c.link.standing(); conn != nil {
		return gridsite.LocalIPTo(conn.path[0].address())
	}
	path, _, err := c.link.dialer.route(context.Background())
	if err != nil {
		return gridsite.LocalIP()
	}
	return gridsite.LocalIPTo(path[0].address())
}

// Close ends the connection and any login in progress. Running commands are cut off.
func (c *Conn) Close() error { return c.link.close() }
