package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
)

// A dialer logs in at the site, through the hosts in front of it, as the user's own files say. It keeps what outlives
// one login: the keys that a person has unlocked, and that the user has been told once which settings are not followed.
type dialer struct {
	to      address
	options Options
	timing  *timing
	keys    unlocked
	told    sync.Once // of what is not followed
}

// help is what a person adds to a login: answers to questions, and the word that an unknown host may be trusted. The
// zero help is what a reconnection in the background has.
type help struct {
	ask           gridsite.Asker // nil: no person is there
	acceptHostKey bool
}

// route reads from the user's configuration which hosts lead to the site, itself the last, and what of the
// configuration is not followed.
func (d *dialer) route(ctx context.Context) (path []hop, ignored []string, err error) {
	c := config{home: d.options.Home}
	path, err = c.route(ctx, d.to)
	return path, c.ignored, err
}

// dial logs in at one host of the path after the other, each through a channel of the one before. If one of them
// refuses, those before are left in order. What of the configuration was not followed is added to the error, because it
// may be the reason.
func (d *dialer) dial(ctx context.Context, by help) (*connection, error) {
	path, ignored, err := d.route(ctx)
	if err != nil {
		return nil, err
	}
	if len(ignored) > 0 && d.options.Log != nil {
		d.told.Do(func() {
			d.options.Log.Warn("the ssh configuration is not followed in all", "host", d.to.name, "ignored", ignored)
		})
	}
	c := &connection{path: path, lost: make(chan struct{})}
	for _, h := range path {
		client, shown, err := d.login(ctx, h, c, by)
		if err != nil {
			c.close()
			if len(ignored) > 0 { // it may be why
				err = fmt.Errorf("%w (Corral does not follow %s)", err, strings.Join(ignored, ", "))
			}
			return nil, err
		}
		c.clients = append(c.clients, client)
		if shown.Kind != "" {
			c.shown = append(c.shown, shown)
		}
	}
	return c, nil
}

// login reaches one host, through the last one of c, within timing.dial. The clock is stopped while a person answers,
// since people look for their telephones. When it runs out, its cause replaces the error of the connection that was
// closed under the login, which would only say that it was closed. The credential is what the host let us in by, the
// zero one if that was an answer of a person.
func (d *dialer) login(
	ctx context.Context, h hop, c *connection, by help,
) (*ssh.Client, credential.Credential, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := fmt.Errorf("%s: no answer within %v", h.address(), d.timing.dial)
	clock := time.AfterFunc(d.timing.dial, func() { cancel(late) })
	defer clock.Stop()
	conn, err := d.reach(ctx, h, c)
	if err == nil {
		var client *ssh.Client
		var shown credential.Credential
		if client, shown, err = d.greet(ctx, h, conn, clock, by); err == nil {
			return client, shown, nil
		}
		conn.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // what it made of the connection says less
	}
	return nil, credential.Credential{}, d.guarded(h, c, err)
}

// guarded is the error of a login as its user may see it: of the first host, only what an ssh server has said, if the
// user is not trusted with this machine's network. What is wrong with the user's own files has a kind.
func (d *dialer) guarded(h hop, c *connection, err error) error {
	_, denied := errors.AsType[*gridsite.LoginError](err)
	_, distrusted := errors.AsType[*gridsite.HostKeyError](err)
	if d.options.Dial == nil || len(c.clients) > 0 || denied || distrusted || corral.KindOf(err) != corral.Internal {
		return err
	}
	if d.options.Log != nil {
		d.options.Log.Info("a host was not reached", "contact", d.to.name, "address", h.address(), "error", err)
	}
	return &gridsite.Unreached{Address: h.address(), Err: err}
}

// reach connects with a host: directly with the first one, and from then on through a channel of the last one of c.
func (d *dialer) reach(ctx context.Context, h hop, c *connection) (net.Conn, error) {
	before := len(c.clients)
	switch {
	case before == 0 && d.options.Dial != nil:
		return d.options.Dial(ctx, h.address())
	case before == 0:
		return (&net.Dialer{}).DialContext(ctx, "tcp", h.address())
	}
	conn, err := c.site().DialContext(ctx, "tcp", h.address())
	if err != nil {
		return nil, fmt.Errorf("%s does not connect us with %s: %w", c.path[before-1].address(), h.address(), err)
	}
	return conn, nil
}

// greet runs the handshake over conn: it shows who we are at the other end, and sees who that is. Package ssh knows no
// context, so the end of ctx closes conn under it. Both sides explain an error themselves, because package ssh wraps
// theirs into text: the host key first, since without a host that is trusted no key was even tried.
func (d *dialer) greet(
	ctx context.Context, h hop, conn net.Conn, clock *time.Timer, by help,
) (client *ssh.Client, shown credential.Credential, err error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	keys, err := d.keyring(ctx, h, clock, by.ask)
	if err != nil {
		return nil, shown, err
	}
	hostKeys, err := readHostKeys(h, by.acceptHostKey)
	if err != nil {
		return nil, shown, err
	}
	sshConn, channels, requests, err := ssh.NewClientConn(conn, h.address(), &ssh.ClientConfig{
		User: h.user, Auth: keys.methods(), AuthCallback: keys.notice,
		HostKeyCallback: hostKeys.check, HostKeyAlgorithms: hostKeys.algorithms,
	})
	if err != nil {
		return nil, shown, hostKeys.explain(keys.explain(err))
	}
	return ssh.NewClient(sshConn, channels, requests), keys.used, nil
}
