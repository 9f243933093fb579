// Package ssh is the transport to a site with an sshd: one connection, over which all of the site's commands run.
//
//	Conn ── sessions: which command may have a session, and when
//	  └─ link: the connection that stands, and the pause after a login that failed
//	      └─ dialer: logs in at one host after the other, with the user's own keys, agent, known_hosts and ssh_config
//
// A command is one line for the user's login shell, whatever that is (line.go), and begins where a random mark is printed:
// what stands before is the login shell's. A command that was not sent is corral.Unavailable, with a *HostKeyError or
// *LoginError of package gridsite in its chain if a person must do something; one that was sent and did not report its end
// is corral.Unknown. ADR 34 has the reasons.
package ssh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// maxSessions is how many commands run at once over one connection. OpenSSH's sshd allows 10 unless its administrator
// says otherwise; the others are for the kill of what was cancelled.
const maxSessions = 8

// Options says what belongs to the user rather than to the site.
type Options struct {
	Home        string // where .ssh is; empty: the user's home directory
	AgentSocket string // of an ssh-agent; empty: none
}

// Conn is the transport to a site with an sshd. It holds one connection, made at the first use and made again when it
// was lost, over which all commands of the site run, at most 8 at once; more wait. After a login that failed it makes a
// pause, longer each time, and says the same again meanwhile, as a *Paused: a site in trouble is not pressed.
//
// What happens at the site before a command is sent is an error of kind corral.Unavailable, with a *HostKeyError or
// *LoginError in its chain if a person must do something; a command that was sent and did not end is corral.Unknown.
type Conn struct {
	contact string
	to      address
	options Options
	keys    unlocked
	link    link
	gate    chan struct{} // one place for each command that runs
	inside  atomic.Int32  // of those how many have a session
	freed   chan struct{} // has something when a command has ended
	timing  timing
}

// timing is what tests shorten.
type timing struct {
	dial, agent, keepalive, answer, refused, kill, minPause, maxPause, loginPause time.Duration
}

// New makes the transport to contact, which is ssh://[user@]host[:port]. It opens no connection yet; ~/.ssh/config
// is read for each.
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
	s := &Conn{
		contact: contact, to: address{to.User, to.Host, to.Port}, options: options, gate: make(chan struct{}, maxSessions),
		freed: make(chan struct{}, 1), link: link{turn: make(chan struct{}, 1), asking: make(chan struct{}, 1)},
		timing: timing{
			dial: 30 * time.Second, agent: 10 * time.Second, keepalive: 15 * time.Second, answer: 45 * time.Second,
			refused: 30 * time.Second, kill: 5 * time.Second, minPause: time.Second, maxPause: time.Minute, loginPause: 5 * time.Minute,
		},
	}
	if _, _, err := s.route(); err != nil {
		return nil, err
	}
	s.link.life, s.link.end = context.WithCancel(context.Background())
	return s, nil
}

// route reads from the user's configuration which hosts lead to the site, itself the last, and what there is not followed.
func (s *Conn) route() (path []hop, ignored []string, err error) {
	config, err := readSSHConfig(filepath.Join(s.options.Home, ".ssh", "config"), s.options.Home)
	if err != nil {
		return nil, nil, err
	}
	path, err = config.route(s.to)
	return path, config.ignored, err
}

// Run runs the command below the user's login shell, whatever that is and whatever it says first. When ctx ends, the
// command's process group is killed.
func (s *Conn) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	mark := rand.Text()
	line, err := remoteLine(mark, cmd.Argv)
	if err != nil {
		return gridsite.Result{}, err
	}
	c, err := s.open(ctx)
	if err != nil {
		return gridsite.Result{}, err
	}
	defer s.leave(c)
	runCtx, e := startExecution(ctx, c, mark)
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
	shell := time.AfterFunc(s.timing.dial, func() {
		if !e.hasBegun() {
			e.fail(noShell(s.timing.dial))
		}
	})
	defer shell.Stop()
	var o outcome
	select {
	case o = <-ended:
	case <-runCtx.Done():
		s.kill(c, e)
	}
	if runCtx.Err() != nil {
		o.err = corral.Errorf(corral.Unknown, "%w", context.Cause(runCtx))
	}
	if o.err != nil {
		return gridsite.Result{}, fmt.Errorf("%s: running %s: %w", s.contact, cmd.Argv[0], o.err)
	}
	return o.res, nil
}

const (
	writeScript  = `umask 077; set -C; cat >"$1"`
	finishScript = `{ [ ! -d "$3" ] || { echo "$3: Is a directory" >&2; exit 1; }; } && chmod "$2" "$1" && mv -f -- "$1" "$3"`
)

// Put sends the file into a temporary one beside it, and renames that only once all of it has arrived. What a lost
// connection leaves is called .corral-put-* .
func (s *Conn) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	tmp := filepath.Join(filepath.Dir(path), ".corral-put-"+rand.Text())
	err := s.script(ctx, r, writeScript, tmp)
	if err == nil {
		err = s.script(ctx, nil, finishScript, tmp, strconv.FormatUint(uint64(mode.Perm()), 8), path)
	}
	if err == nil {
		return nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timing.kill)
	defer cancel()
	if left := s.script(cleanup, nil, `rm -f "$1"`, tmp); left != nil {
		err = errors.Join(err, left)
	}
	return fmt.Errorf("writing %s: %w", path, err)
}

// script runs a shell script that has nothing to say unless it fails.
func (s *Conn) script(ctx context.Context, stdin io.Reader, script string, args ...string) error {
	res, err := s.Run(ctx, gridsite.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: stdin})
	if err == nil && res.Exit != 0 {
		return corral.Errorf(corral.Failed, "%s: exit status %d: %s", s.contact, res.Exit, gridsite.LastLine(res.Stderr))
	}
	return err
}

// LocalIP returns the address that this machine has on the way to the site, or to the host in front of it that is
// jumped over; a loopback address if there is none. Nothing is sent.
func (s *Conn) LocalIP() netip.Addr {
	path, _, err := s.route()
	if err != nil {
		return gridsite.LocalIP()
	}
	return gridsite.LocalIPTo(path[0].address())
}

// Close ends the connection, and a login that goes on. What still runs is cut off.
func (s *Conn) Close() error { return s.link.close() }

// unavailable is the error of what did not reach the site.
func (s *Conn) unavailable(format string, args ...any) error {
	return corral.ErrorAt(corral.Unavailable, s.contact, format, args...)
}
