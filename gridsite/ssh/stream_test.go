package ssh_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/local"
)

// startStream starts a shell script at the site, until the test ends.
func startStream(ctx context.Context, t *testing.T, conn gridsite.Streamer, script string) gridsite.Stream {
	t.Helper()
	s, err := conn.Stream(ctx, gridsite.Command{Argv: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// These tests apply to every transport that supports commands with live input and output.
func TestStream(t *testing.T) {
	t.Parallel()
	for name, conn := range map[string]gridsite.Streamer{"local": local.Conn{}, "ssh": serveSSH(t)} {
		t.Run(name, func(t *testing.T) { testStream(t, conn) })
	}
}

func testStream(t *testing.T, conn gridsite.Streamer) {
	t.Run("answers what it is told, as it is told it", func(t *testing.T) {
		s := startStream(t.Context(), t, conn, "cat")
		for _, say := range []string{"a", "binary \x00\xff\n", strings.Repeat("x", 1<<20)} {
			go func() { _, _ = io.WriteString(s, say) }()
			heard := make([]byte, len(say))
			if _, err := io.ReadFull(s, heard); err != nil || string(heard) != say {
				t.Errorf("heard %.20q, %v, want %.20q", heard, err, say)
			}
		}
		s.Close()
		if _, err := io.ReadAll(s); err == nil {
			_ = s.Wait() // with or without an error: it was asked to end
		}
	})
	t.Run("ends with what it complained of", func(t *testing.T) {
		s := startStream(t.Context(), t, conn, "echo out; echo no luck >&2; exit 3")
		if out, err := io.ReadAll(s); err != nil || string(out) != "out\n" {
			t.Errorf("read %q, %v", out, err)
		}
		if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "exit status 3: no luck") {
			t.Errorf("Wait = %v", err)
		}
	})
	t.Run("ends in order", func(t *testing.T) {
		s := startStream(t.Context(), t, conn, "echo out")
		_, _ = io.ReadAll(s)
		if err := s.Wait(); err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := startStream(ctx, t, conn, "echo began; exec cat")
		if _, err := io.ReadFull(s, make([]byte, len("began\n"))); err != nil {
			t.Fatal(err)
		}
		cancel()
		_, _ = io.ReadAll(s)
		_ = s.Wait()
	})
	t.Run("ends though it does not listen", func(t *testing.T) {
		s := startStream(t.Context(), t, conn, `trap "" HUP TERM; echo began; while :; do sleep 60; done`)
		if _, err := io.ReadFull(s, make([]byte, len("began\n"))); err != nil {
			t.Fatal(err)
		}
		s.Close()
		_ = s.Wait()
	})
}
