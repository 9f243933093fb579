package pilot

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

// A transcript is an output that may be read while it is being written.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *transcript) read(context.Context) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes()), nil
}

func TestProbeIsAttended(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	out := new(transcript)
	ended := make(chan error, 1)
	go func() {
		ended <- Probe(ctx, strings.NewReader(`{"collector": "`+ln.Addr().String()+`", "hold_s": 180}`), out)
	}()
	f, err := broker.Attend(ctx, out.read)
	if err != nil {
		t.Fatal(err)
	}
	if choice, err := f.Decide(corral.BrokerAuto); err != nil || choice.Way != corral.BrokerNone {
		t.Errorf("on one machine: %+v, %v; want directly", choice, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Probe() = %v once its context is done", err)
	}
}

func TestProbeRefusesUnknownRequests(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"":                                   "reading the probe",
		`{"colector": "x:1"}`:                "colector",
		`{"collector": "x"}`:                 "not HOST:PORT",
		`{"collector": "x:70000"}`:           "not HOST:PORT",
		`{"collector": "x:1", "ccb": ["y"]}`: `"y"`,
	} {
		err := Probe(context.Background(), strings.NewReader(request), new(bytes.Buffer))
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("Probe(%s) = %v, want it refused with %q", request, err, want)
		}
	}
}

// The node's answer names the address at which the worker port was found, regardless of its position in the list.
func TestProbeOfNode(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for addresses, want := range map[string]string{`["unix:/nowhere","unix:` + socket + `"]`: "unix:" + socket, `["unix:/nowhere"]`: "", `[]`: ""} {
		var out bytes.Buffer
		var n jobfiles.Node
		began := time.Now()
		if err := Probe(t.Context(), strings.NewReader(`{"node":{"addresses":`+addresses+`}}`), &out); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &n); err != nil || n.Reached != want || (n.Trouble == "") != (want != "") || n.Libc != nodecheck.Libc() || n.Now.Before(began) {
			t.Errorf("of %s: %s, %v; want %q reached", addresses, out.Bytes(), err, want)
		}
	}
}
