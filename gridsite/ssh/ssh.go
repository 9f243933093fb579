// Package ssh is the transport to a site with an sshd: one connection, over which all of the site's commands run.
//
//	Conn ── sessions: which command may have a session, and when
//	  └─ link: the connection that stands, and the pause after a login that failed
//	      └─ dialer: logs in at one host after the other, with the user's keys, agent, known_hosts and ssh_config
//
// A login does what the user's own ssh would do: the configuration is read by ssh itself (config.go), keys and
// certificates are tried in its order (keys.go), hosts are trusted by its files (hostkeys.go). Where a person has to
// answer, a question goes to whoever has asked for the login; a connection that is lost is made again without one.
//
// A command is one line for the user's login shell, whatever that is (line.go), and begins where a random mark is
// printed: what stands before is the login shell's. Run (run.go) collects what the command prints; Stream (stream.go)
// hands it on while the command runs.
//
// A command that was not sent is corral.Unavailable, with a *HostKeyError or *LoginError of package gridsite in its
// chain if a person must do something; one that was sent and did not report its end is corral.Unknown. ADR 34 has the
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

// Options says what belongs to the user rather than to the site.
type Options struct {
	Home        string       // where .ssh is; empty: the user's home directory
	AgentSocket string       // of an ssh-agent; empty: none
	Log         *slog.Logger // is told once what of the user's configuration is not followed; nil: nobody is

	// Dial connects with the first host, at HOST:PORT; nil: without a limit. With it the user is not trusted with this
	// machine's network: what fails before the host shows its key is a *gridsite.Unreached, whose reason is logged.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Conn is the transport to one site. Over its one connection run at most 8 commands at once; more wait. It reconnects
// by itself whenever a command needs the site, as far as no person is needed for that.
type Conn struct {
	site     site
	link     link
	sessions sessions
	timing   *timing
}

// A site is the contact by which the user knows it. It stands in front of every error.
type site string

// unavailable is the error of what did not reach the site.
func (s site) unavailable(format string, args ...any) error {
	return corral.ErrorAt(corral.Unavailable, string(s), format, args...)
}

// timing is what tests shorten: for one login; for an answer of the agent; between two signs of life, and for the
// answer to one; for a server that admits no session; for a kill; and the pauses between logins, the last one where a
// person has to do something.
type timing struct {
	dial, agent, keepalive, answer, refused, kill, minPause, maxPause, loginPause time.Duration
}

// New makes the transport to contact, which is ssh://[user@]host[:port]. It opens no connection yet; ~/.ssh/config
// is read for each, and now, because a user wants to know early that it cannot be followed.
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

// Run runs the command below the user's login shell, whatever that is and whatever it says first. When ctx ends, the
// command's process group is killed.
//
// A command whose line was sent and that did not report its end is Unknown: it may have done anything. One whose login
// shell never came to it within timing.dial is Unknown too, because the shell may still come to it.
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

// Put sends the file into a temporary one beside it, and renames that only once all of it has arrived. What a lost
// connection leaves is called .corral-put-* .
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

// script runs a shell script that prints nothing of interest unless it fails.
func (c *Conn) script(ctx context.Context, stdin io.Reader, script string, args ...string) error {
	res, err := c.Run(ctx, gridsite.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: stdin})
	if err == nil && res.Exit != 0 {
		return corral.Errorf(corral.Failed, "%s: exit status %d: %s", c.site, res.Exit, gridsite.LastLine(res.Stderr))
	}
	return err
}

// LocalIP returns the address that this machine has on the way to the site, or to the host in front of it that is
// jumped over. Pilots of a site behind the same network as this machine can dial it.
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

// Close ends the connection, and a login that goes on. What still runs is cut off.
func (c *Conn) Close() error { return c.link.close() }
