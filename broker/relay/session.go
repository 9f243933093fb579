package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/corral-pilot/corral"
)

// Limits on how a relay begins: what answers may be a shell that prints a message of the day without end.
const (
	maxAddresses = 16       // of a head node
	maxHello     = 16 << 10 // bytes
	helloTime    = 30 * time.Second
)

// A Gate decides about requests. It returns the connection that was asked for. Its error is told to the worker, kind
// and words, so it must not say more than anybody at the site may know.
type Gate func(context.Context, Request) (net.Conn, error)

// A Session is corrald's side of a relay.
type Session struct {
	Addresses []string // HOST:PORT at which nodes of the site may reach it, in the order to try
	mux       *yamux.Session
}

// Open takes over stdio, at the other end of which a relay was started, and waits for the relay's greeting. The error
// is Failed if something else is there; stdio is closed then.
func Open(ctx context.Context, stdio io.ReadWriteCloser) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stdio.Close() })
	defer stop()
	// What follows the greeting in the buffer belongs to the streams, so the same reader goes on with it.
	in := bufio.NewReaderSize(stdio, maxHello)
	line, err := in.ReadSlice('\n')
	if err != nil {
		stdio.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("the relay did not begin: %w", err)
	}
	var h hello
	err = json.Unmarshal(line, &h)
	if err != nil || h.Relay != 1 || len(h.Addresses) == 0 || len(h.Addresses) > maxAddresses {
		stdio.Close()
		return nil, corral.Errorf(corral.Failed, "%.80q is not how a relay begins", line)
	}
	s := &Session{}
	for _, a := range h.Addresses {
		s.Addresses = append(s.Addresses, a.String())
	}
	s.mux, err = yamux.Server(struct {
		io.Reader
		io.WriteCloser
	}{in, stdio}, multiplexing())
	return s, err
}

// Serve answers requests until the relay is gone or ctx ends; then all its connections are closed. It returns when
// none of them is left.
func (s *Session) Serve(ctx context.Context, gate Gate) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.mux.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	defer s.mux.Close()
	// The head node bounds its connections too, but corrald does not rely on a program at a site.
	slots := make(chan struct{}, maxStreams)
	for {
		st, err := s.mux.AcceptStream()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
			open.Go(func() { serve(ctx, &tube{Stream: st}, gate); <-slots })
		default:
			st.Close()
		}
	}
}

// serve does what one stream asks for, and returns when the connection is over.
func serve(ctx context.Context, st *tube, gate Gate) {
	defer st.Close()
	_ = st.SetDeadline(time.Now().Add(openTime))
	to, err := admit(ctx, st, gate)
	if _, told := io.WriteString(st, answer(err)); err != nil || told != nil {
		if to != nil {
			to.Close()
		}
		return
	}
	_ = st.SetDeadline(time.Time{})
	join(st, to)
}

// admit reads a stream's request and has the gate decide about it.
func admit(ctx context.Context, st net.Conn, gate Gate) (net.Conn, error) {
	r, err := readRequest(st)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return gate(ctx, r)
}
