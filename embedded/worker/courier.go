package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// couriers are the connections over which a worker carries files, one for each job at a time. An idle one is kept for
// the next job, because to dial, and to be admitted, takes longer than a small file.
type couriers struct {
	lg   *slog.Logger
	dial func(context.Context, wire.Role) (*wire.Greeting, error)

	mu     sync.Mutex // guards what follows
	idle   []*wire.Greeting
	closed bool
}

// take returns one that is idle, or nil.
func (c *couriers) take() *wire.Greeting {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	g := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	return g
}

// give keeps g for the next job.
func (c *couriers) give(g *wire.Greeting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		g.Close()
		return
	}
	c.idle = append(c.idle, g)
}

// close ends the idle ones, and each of the others when its job gives it back.
func (c *couriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, g := range c.idle {
		g.Close()
	}
	c.idle = nil
}

// carry does something over a courier's connection, again if that breaks, until ctx ends, the dispatcher says no, or a
// file of this machine makes trouble. The dispatcher hangs up on couriers that are idle, so a connection that was kept
// may turn out to be dead: then another is tried at once, without a pause.
func (c *couriers) carry(ctx context.Context, do func(*wire.Conn) error) error {
	var b wire.Backoff
	for {
		reused, err := c.tryCarry(ctx, do)
		switch {
		case err == nil || final(err):
			return err
		case reused && ctx.Err() == nil && corral.KindOf(err) != corral.Unavailable: // it was idle for too long
			continue
		}
		c.lg.Debug("files not carried", "error", err)
		if !b.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// final reports whether another try would end alike: the dispatcher has said no, or a file of this machine makes
// trouble.
func final(err error) bool {
	_, here := errors.AsType[*fs.PathError](err)
	return unwanted(err) || corral.KindOf(err) == corral.Failed || here
}

// unwanted reports whether the dispatcher does not count on this worker for the job any more.
func unwanted(err error) bool {
	return errors.Is(err, wire.ErrRefused) || corral.KindOf(err) == corral.Conflict
}

// tryCarry does it over one connection, which may be one that was used before. A connection over which something failed
// is closed: the two sides may no longer agree on what comes next.
func (c *couriers) tryCarry(ctx context.Context, do func(*wire.Conn) error) (reused bool, err error) {
	g := c.take()
	if reused = g != nil; !reused {
		if g, err = c.dial(ctx, wire.RoleCourier); err != nil {
			return false, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = g.Net.Close() })
	err = do(g.Conn)
	if !stop() || err != nil {
		g.Close()
		return reused, err
	}
	c.give(g)
	return reused, nil
}

// answered waits for an answer of this type; it puts the result that it carries into r, unless that is nil.
func answered(c *wire.Conn, kind string, r *execution.Result) error {
	m, err := c.Recv(wire.MaxFrame)
	switch {
	case err != nil:
		return wire.NoEOF(err)
	case m.Type != kind || m.Kind == "" && r != nil && len(m.Results) != 1:
		return fmt.Errorf("%w: %s instead of %s", wire.ErrProtocol, m.Type, kind)
	case m.Kind != "":
		return corral.Errorf(m.Kind, "%s", m.Reason)
	case r != nil:
		*r = m.Results[0].Result
	}
	return nil
}
