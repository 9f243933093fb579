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

// Limits on a relay's greeting: the peer may be a shell that prints an endless message of the day.
const (
	maxAddresses = 16       // of a head node
	maxHello     = 16 << 10 // bytes
	helloTime    = 30 * time.Second
)

// A Gate decides about requests. It returns the requested connection. Its error is sent to the worker with kind and
// text, so the text must not reveal more than any user of the site may know.
type Gate func(context.Context, Request) (net.Conn, error)

// A Session is corrald's side of a relay.
type Session struct {
	Addresses []string // HOST:PORT at which nodes of the site may reach it, in the order to try
	mux       *yamux.Session
}

// Open takes over stdio, which is connected to a new relay, and waits for the relay's greeting. The error is Failed if
// the peer is not a relay; stdio is closed then.
func Open(ctx context.Context, stdio io.ReadWriteCloser) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stdio.Close() })
	defer stop()
	// Data after the greeting in the buffer belongs to the streams, so the same reader continues with it.
	in := bufio.NewReaderSize(stdio, maxHello)
	line, err := in.ReadSlice('\n')
	if err != nil {
		stdio.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("the relay did not start: %w", err)
	}
	var h hello
	err = json.Unmarshal(line, &h)
	if err != nil || h.Relay != 1 || len(h.Addresses) == 0 || len(h.Addresses) > maxAddresses {
		stdio.Close()
		return nil, corral.Errorf(corral.Failed, "%.80q is not the greeting of a relay", line)
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

// Serve answers requests until the relay is gone or ctx ends; then it closes all connections. It returns when none of
// them is left.
func (s *Session) Serve(ctx context.Context, gate Gate) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.mux.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	defer s.mux.Close()
	// The head node limits its connections too, but corrald does not trust a program at a site.
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

// serve handles one stream, and returns when its connection has ended.
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

// admit reads a stream's request and lets the gate decide about it.
func admit(ctx context.Context, st net.Conn, gate Gate) (net.Conn, error) {
	r, err := readRequest(st)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return gate(ctx, r)
}
