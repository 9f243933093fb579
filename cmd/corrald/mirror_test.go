package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/corral-pilot/corral/staging"
)

// TestMirrorHoldsNobody: the mirror does not keep a connection whose peer stalls in a request or its body.
func TestMirrorHoldsNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &mirrorPort{
		listener: l, mirror: staging.Mirror{Dir: t.TempDir()}, lg: slog.New(slog.DiscardHandler),
		patience: 50 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.serve(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	const head = "GET /index.json HTTP/1.1\r\nHost: here\r\n"
	for _, begun := range []string{"", head, head + "Content-Length: 9\r\n\r\n1"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%q: %v, want the connection's end", begun, err)
		}
	}
}
