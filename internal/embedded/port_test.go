package embedded_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

func TestWorkerPortOverTLS(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	cert, err := wire.LoadOrCreateCertificate(certs)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{cluster: newCluster(t, dispatch.Config{}), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	port := port.New(testLog(t), b.gate, nil)
	ln, digest, err := port.ListenTLS("127.0.0.1:0", cert)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- port.Serve(ctx, ln) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	wc := workerConfig("tag/0", "tls:"+ln.Addr().String())
	wc.CertDigest = digest
	wc.Addresses = append([]string{"unix:/nowhere/at/all"}, wc.Addresses...)
	b.work(t, wc)
	b.d.Submit([]execution.Job{sh(1, b.dir, "true")})
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}

	t.Run("another certificate is not accepted", func(t *testing.T) {
		other, err := wire.LoadOrCreateCertificate(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = wire.Reach(ctx, "tls:"+ln.Addr().String(), wire.CertDigest(other))
		if err == nil || !strings.Contains(err.Error(), "the certificate has digest "+digest) {
			t.Errorf("Reach() = %v, want a sentence with both digests", err)
		}
		if err = wire.Reach(ctx, "tls:"+ln.Addr().String(), ""); err == nil {
			t.Error("a worker without digest accepts any certificate")
		}
	})
	t.Run("older TLS is not spoken", func(t *testing.T) {
		_, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err == nil {
			t.Error("TLS 1.2 was accepted")
		}
	})
	t.Run("the certificate outlives the process", func(t *testing.T) {
		again, err := wire.LoadOrCreateCertificate(certs)
		if err != nil || wire.CertDigest(again) != digest {
			t.Errorf("digest %s, %v after loading again, want %s", wire.CertDigest(again), err, digest)
		}
		if st, err := os.Stat(filepath.Join(certs, "worker-port.pem")); err != nil || st.Mode() != 0o600 {
			t.Errorf("certificate has mode %v, %v; want 0600", st.Mode(), err)
		}
	})
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	b := &bed{cluster: c}
	await(t, "the socket", func() bool { _, err := os.Stat(c.socket); return err == nil })
	st, err := os.Stat(c.socket)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket has mode %v, %v; want 0600", st.Mode(), err)
	}
	err = port.New(slog.New(slog.DiscardHandler), c.gate, nil).ServeUnix(context.Background(), c.socket)
	if corral.KindOf(err) != corral.Conflict {
		t.Errorf("a second port on the socket: %v, want a conflict", err)
	}
	b.cluster.stop()
	absent(t, c.socket)

	// The socket of a killed corrald is replaced.
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	again := newClusterAt(t, dispatch.Config{}, c.socket)
	again.work(t, workerConfig("tag/0", again.address()))
	again.awaitWorkers(t, 1)
}

// raw connects without any protocol.
func (c *cluster) raw(t *testing.T) net.Conn {
	t.Helper()
	var nc net.Conn
	await(t, "the port", func() bool {
		var err error
		nc, err = net.Dial("unix", c.socket)
		return err == nil
	})
	t.Cleanup(func() { nc.Close() })
	return nc
}

// greet is wire.Greet for a port that has enough time to answer.
func (c *cluster) greet(t *testing.T, h *wire.Hello) (g *wire.Greeting, err error) {
	t.Helper()
	await(t, "an answer", func() bool {
		g, err = wire.Greet(context.Background(), c.raw(t), h)
		return err == nil || errors.Is(err, wire.ErrRefused)
	})
	return g, err
}

func frame(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func goodHello() *wire.Hello {
	return &wire.Hello{
		Version: wire.Version, Role: wire.RoleWorker, Tag: "tag", Token: testToken, ID: "tag/0", Instance: "i",
		Holder: "pilot", CPUs: 1, MemoryMiB: 1, LeftMS: 1000,
	}
}

func TestPortAnswersNothingButTheProtocol(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	wide := goodHello()
	wide.Token = strings.Repeat("x", wire.MaxHello)
	foreign := goodHello()
	foreign.ID = "other/0"
	tests := []struct {
		name string
		send []byte
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"a frame of 2 GiB", append(huge, "{}"...)},
		{"a hello of more than 4 KiB", frame(t, wire.Message{Type: wire.TypeHello, Hello: wide})},
		{"no JSON", append(binary.BigEndian.AppendUint32(nil, 4), "\x00\x01\x02\x03"...)},
		{"another message", frame(t, wire.Message{Type: wire.TypeResults})},
		{"an unknown message", frame(t, wire.Message{Type: "shell"})},
		{"a hello without body", frame(t, wire.Message{Type: wire.TypeHello})},
		{"a worker id of another attempt", frame(t, wire.Message{Type: wire.TypeHello, Hello: foreign})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nc := c.raw(t)
			if _, err := nc.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
			got, err := io.ReadAll(nc)
			if len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("answer %q, %v; want the connection closed without a word", got, err)
			}
		})
	}
	if w := c.d.Workers(); len(w) != 0 {
		t.Errorf("registered: %+v", w)
	}
}

func TestPortRefusesWithAMessage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	tests := []struct {
		name  string
		adapt func(*wire.Hello)
		kind  corral.Kind
		want  string
	}{
		{"wrong version", func(h *wire.Hello) { h.Version = 99 }, corral.Invalid, "version 99 of the worker protocol"},
		{"wrong token", func(h *wire.Hello) { h.Token = "guess" }, corral.Unauthenticated, "the token is not that of tag"},
		{"no token", func(h *wire.Hello) { h.Token = "" }, corral.Unauthenticated, "the token is not that of tag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := goodHello()
			tt.adapt(h)
			_, err := c.greet(t, h)
			if !errors.Is(err, wire.ErrRefused) || corral.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("greet() = %v, want %s with %q", err, tt.kind, tt.want)
			}
		})
	}
}

func TestRegisteredWorkerMustKeepToTheProtocol(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	for _, m := range []*wire.Message{
		{Type: wire.TypeAssign, Jobs: []execution.Job{sh(1, "/d", "x")}},
		{Type: wire.TypeResults, Results: []wire.Report{{N: 1, Result: execution.Result{Status: "great"}}}},
		{Type: wire.TypeHello, Hello: goodHello()},
	} {
		g, err := c.greet(t, goodHello())
		if err != nil {
			t.Fatal(err)
		}
		g.Send(&wire.Message{Type: wire.TypeHeld})
		g.Send(m)
		_ = g.Net.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := g.Recv(wire.MaxFrame); !errors.Is(err, io.EOF) {
			t.Errorf("after %s: %v, want the connection closed", m.Type, err)
		}
		g.Close()
	}
}

func TestGateErrorIsNotARefusal(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	open(t.Context(), port.New(slog.New(slog.DiscardHandler), brokenGate{}, nil)).conns <- theirs
	_, err := wire.Greet(context.Background(), ours, goodHello())
	if errors.Is(err, wire.ErrRefused) || corral.KindOf(err) != corral.Unavailable || strings.Contains(err.Error(), "disk") {
		t.Errorf("greet() = %v, want unavailable, without what is wrong inside", err)
	}
}

type brokenGate struct{}

func (brokenGate) Admit(context.Context, port.Credentials) (port.Admission, error) {
	return port.Admission{}, errors.New("disk of the store is full")
}
func (brokenGate) Lease(context.Context, corral.JobID, string, string) error  { return nil }
func (brokenGate) Report(context.Context, corral.JobID, string, string) error { return nil }

func (brokenGate) LoseHost(context.Context, corral.JobID, corral.LostHost) error { return nil }
