package broker

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A jobFile is the output of a job, which is read while it is written.
type jobFile struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *jobFile) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *jobFile) soFar(context.Context) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes()), nil
}

// A probe on this machine and its attendant find the same as a pilot with a link.
func TestProbe(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	p := Probe{Collector: listen(t), CCB: []string{closed(t)}, Schedd: listen(t), Hold: corral.Seconds(time.Hour)}
	var out jobFile
	_, _ = io.WriteString(&out, "starting on node 7\n{\n")
	over := make(chan error, 1)
	go func() { over <- p.Run(ctx, &out) }()
	f, err := Attend(ctx, out.soFar)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Collector.reached() || !f.Schedd.reached() || f.Brokers[0].Trouble != refused {
		t.Errorf("findings = %+v, want collector and schedd reached, and the broker refused", f)
	}
	if !f.Node.Asked || !slices.Contains(f.Node.Addresses, f.Node.Reached) {
		t.Errorf("node = %+v, want reached at one of its addresses", f.Node)
	}
	end()
	if err := <-over; err != nil {
		t.Errorf("the probe ended with %v", err)
	}
	if err := (Probe{Collector: "nowhere"}).Run(t.Context(), io.Discard); corral.KindOf(err) != corral.Invalid {
		t.Errorf("a probe of no address: %v, want Invalid", err)
	}
}

func TestAttendOfASilentProbe(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := Attend(ctx, new(jobFile).soFar); corral.KindOf(err) != corral.Timeout {
		t.Errorf("Attend = %v, want Timeout", err)
	}
}

func TestMeasureDialsRelays(t *testing.T) {
	t.Parallel()
	here, gone := listen(t), closed(t)
	f, err := measure(t.Context(), Config{
		Mode: corral.BrokerRelay, Collector: here, Relays: []string{here, gone},
		DialRelay: func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
	})
	if err != nil || !f.Relays[0].reached() || f.Relays[1].Trouble != refused {
		t.Errorf("measure = %+v, %v, want the first relay reached and the second refused", f.Relays, err)
	}
	if f.Node.Asked {
		t.Error("the pool's side was asked, on which a relay does not depend")
	}
}
