package port

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

func TestCallsOfAnAttemptAreAnIntervalApart(t *testing.T) {
	calls := newCallBacks()
	start := time.Now()
	for _, tt := range []struct {
		attempt corral.JobID
		hosts   int
		after   time.Duration
		want    bool
	}{
		{1, 1, 0, true}, {1, 1, callInterval - 1, false}, {2, 1, callInterval - 1, true}, {1, 1, callInterval, true}, {1, 1, callInterval + 1, false},
		// All hosts of an attempt ask when it starts; afterwards they share an interval.
		{3, 3, 0, true}, {3, 3, 0, true}, {3, 3, 1, true}, {3, 3, 2, false}, {3, 3, callInterval, true}, {3, 3, callInterval + 1, false},
		{3, 3, time.Minute, true}, {3, 3, time.Minute, true}, {3, 3, time.Minute, true}, {3, 3, time.Minute, false},
	} {
		if got := calls.admit(tt.attempt, tt.hosts, start.Add(tt.after)); got != tt.want {
			t.Errorf("attempt %d of %d hosts after %v: admitted %v, want %v", tt.attempt, tt.hosts, tt.after, got, tt.want)
		}
	}
	calls.admit(4, 1, start.Add(time.Hour))
	if len(calls.used) != 1 {
		t.Errorf("%d attempts are remembered, want the last one", len(calls.used))
	}
}

// A remote pilot must not name this machine's loopback addresses.
func TestRemotePilotMustNotNameLoopbackAddresses(t *testing.T) {
	t.Parallel()
	p := New(slog.New(slog.DiscardHandler), nil, nil)
	here, there := net.Pipe()
	t.Cleanup(func() { there.Close() })
	c := wire.NewConn(remote{here})
	t.Cleanup(c.Close)
	for _, address := range []string{"127.0.0.1:2000", "[::1]:2000", "[::ffff:127.0.0.1]:2000"} {
		_, err := p.call(context.Background(), c, Admission{Attempt: 1}, &wire.Message{Addresses: []string{"198.51.100.1:2000", address}, Nonce: "0123456789abcdef"})
		if corral.KindOf(err) != corral.Forbidden {
			t.Errorf("%s: %v, want it forbidden", address, err)
		}
	}
}

// remote is a connection from another machine.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }
