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
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A dialer logs in at the site, through its jump hosts, with the settings of the user's own files. It keeps data beyond
// one login: the keys that a person has unlocked, and whether the user was warned of unsupported settings.
type dialer struct {
	to      address
	options Options
	timing  *timing
	keys    unlocked
	told    sync.Once // the warning about unsupported settings
}

// help is a person's part in a login: answers to questions, and consent to trust an unknown host. The zero help is for
// reconnections in the background.
type help struct {
	ask           gridsite.Asker // nil: no person is available
	acceptHostKey bool
}

// route reads from the user's configuration the hosts on the route to the site, with the site last, and the settings
// that are not followed.
func (d *dialer) route(ctx context.Context) (path []hop, ignored []string, err error) {
	c := config{home: d.options.Home}
	path, err = c.route(ctx, d.to)
	return path, c.ignored, err
}

// dial logs in at the hosts of the path in order, each through a channel of the previous host. If a host refuses, dial
// closes the earlier connections. The error names settings that were not followed, because they may be the reason.
func (d *dialer) dial(ctx context.Context, by help) (*connection, error) {
	path, ignored, err := d.route(ctx)
	if err != nil {
		return nil, err
	}
	if len(ignored) > 0 && d.options.Log != nil {
		d.told.Do(func() {
			d.options.Log.Warn("some settings of the ssh configuration are not supported", "host", d.to.name,
				"ignored", ignored)
		})
	}
	c := &connection{path: path, lost: make(chan struct{})}
	for _, h := range path {
		client, shown, err := d.login(ctx, h, c, by)
		if err != nil {
			c.close()
			if len(ignored) > 0 { // this may be the reason
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

// login logs in at one host, through the last host of c, within timing.dial. The clock is stopped while a person
// answers, because people may have to look for their telephones. When the time is over, the timeout replaces the error
// of the connection that was closed during the login, which is less specific. It returns the credential that the host
// accepted, or a zero credential if the host accepted a person's answer.
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
		err = cause // the error of the connection is less specific
	}
	return nil, credential.Credential{}, d.guarded(h, c, err)
}

// guarded returns the error of a login as the user may see it. If the user is not trusted with this machine's network,
// the error of the first host contains only what an ssh server has sent. Errors in the user's own files have a kind.
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

// reach connects with a host: directly with the first host, and through a channel of the last host of c with every
// other host.
func (d *dialer) reach(ctx context.Context, h hop, c *connection) (net.Conn, error) {
	before := len(c.clients)
	switch {
	case before == 0 && d.options.Dial != nil:
		return d.options.Dial(ctx, h.address())
	case before == 0:
		return (&net.Dialer{}).DialContext(ctx, "tcp", h.address())
	}
	conn, err := c.site().DialContext(ctx, "tcp", h.address())
	return conn, wrap.Errorf(err, "%s does not connect us with %s", c.path[before-1].address(), h.address())
}

// greet performs the handshake over conn, in which both sides authenticate. Package ssh has no contexts, so the end of
// ctx closes conn. The callbacks for the host key and for the user's keys record their errors themselves, because
// package ssh converts errors to text. An error of the host key is returned first: unless the host is trusted, no key
// was tried.
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
