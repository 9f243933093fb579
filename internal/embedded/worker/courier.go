package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// couriers are the connections over which a worker transfers files; each connection serves one job at a time. Idle
// connections are kept for the next job, because dialling and admission take longer than the transfer of a small file.
type couriers struct {
	lg   *slog.Logger
	dial func(context.Context, wire.Role) (*wire.Greeting, error)

	mu     sync.Mutex // guards the fields below
	idle   []*wire.Greeting
	closed bool
}

// take returns an idle connection, or nil.
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

// close closes the idle connections at once, and the others when they are returned after use.
func (c *couriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, g := range c.idle {
		g.Close()
	}
	c.idle = nil
}

// carry calls do with a courier's connection, and retries if the connection breaks, until ctx ends, the dispatcher
// refuses, or a local file causes an error. The dispatcher closes idle couriers, so an idle connection may turn out to
// be closed: carry then tries another without a pause.
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

// final reports whether a retry would fail in the same way: the dispatcher has refused, or a local file caused the
// error.
func final(err error) bool {
	_, here := errors.AsType[*fs.PathError](err)
	return unwanted(err) || corral.KindOf(err) == corral.Failed || here
}

// unwanted reports whether the dispatcher no longer expects this worker to run the job.
func unwanted(err error) bool {
	return errors.Is(err, wire.ErrRefused) || corral.KindOf(err) == corral.Conflict
}

// tryCarry calls do with one connection, which may be reused. It closes the connection after an error: the two sides
// may no longer agree on which message comes next.
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

// answered waits for an answer of this type; if r is not nil, it stores the answer's result in r.
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
