package ssh

import (
	"context"
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/corral-pilot/corral"
)

// Subsystem opens one of the server's subsystems, such as sftp, which speaks at the other end of what is returned until
// that is closed or ctx ends. A server that has no such subsystem is a corral.Failed error.
func (s *Conn) Subsystem(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	s.stay()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	ok, err := c.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{name}))
	if err != nil || !ok {
		stop()
		c.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil, s.unavailable("asking for %s: %w", name, context.Cause(ctx))
	case err != nil:
		return nil, s.unavailable("asking for %s: %w", name, err)
	case !ok:
		return nil, corral.ErrorAt(corral.Failed, s.contact, "the server has no %s", name)
	}
	go ssh.DiscardRequests(c.requests)
	go func() { _, _ = io.Copy(io.Discard, c.Stderr()) }()
	return c.Channel, nil
}
