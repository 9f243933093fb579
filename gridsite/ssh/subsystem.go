package ssh

import (
	"context"
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
)

// Subsystem opens one of the server's subsystems, such as sftp, and returns a stream to it, which lasts until it is
// closed or ctx ends. The stream uses the site's connection, so it needs no second login, and it does not count among
// the commands. If the server does not provide the subsystem, the error is corral.Failed.
func (c *Conn) Subsystem(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	ch, err := c.sessions.open(ctx)
	if err != nil {
		return nil, err
	}
	c.sessions.stay()
	stop := context.AfterFunc(ctx, func() { ch.Close() })
	ok, err := ch.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{name}))
	if err != nil || !ok {
		stop()
		ch.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil, c.site.unavailable("asking for %s: %w", name, context.Cause(ctx))
	case err != nil:
		return nil, c.site.unavailable("asking for %s: %w", name, err)
	case !ok:
		return nil, corral.ErrorAt(corral.Failed, string(c.site), "the server has no %s", name)
	}
	go ssh.DiscardRequests(ch.requests)
	go func() { _, _ = io.Copy(io.Discard, ch.Stderr()) }()
	return ch.Channel, nil
}
