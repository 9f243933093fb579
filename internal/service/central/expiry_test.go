package central

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A text can be written and read concurrently.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// Before the certificate expires, and again afterwards, one message is logged; a new certificate is loaded without a
// handshake.
func TestWatchWarnsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		first, firstKey := pair(t, 1) // valid for two hours, of which one has passed
		replace(t, cert, first)
		replace(t, key, firstKey)
		var log text
		c, err := LoadCertificates(slog.New(slog.NewTextHandler(&log, nil)), cert, key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Watch(ctx)
		warned := func(after time.Duration, want int) {
			t.Helper()
			<-time.After(after) // on the bubble's clock
			synctest.Wait()
			if got := strings.Count(log.String(), "own certificate"); got != want {
				t.Errorf("%d warnings, want %d:\n%s", got, want, log.String())
			}
		}
		warned(0, 0)
		warned(19*time.Minute, 0)
		warned(2*time.Minute, 1)
		warned(28*time.Minute, 2)
		warned(12*time.Minute, 3)
		if !strings.Contains(log.String(), "expired at") {
			t.Errorf("it does not say that it has ended:\n%s", log.String())
		}
		warned(time.Hour, 3)
		before := c.Until()
		second, secondKey := pair(t, 2)
		replace(t, key, secondKey)
		replace(t, cert, second)
		warned(2*time.Minute, 4)
		if !strings.Contains(log.String(), "was replaced") || !c.Until().After(before) {
			t.Error("the new certificate was not taken")
		}
	})
}
