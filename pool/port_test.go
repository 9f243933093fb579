package pool

import (
	"bytes"
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

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
)

func TestWorkerPortOverTLS(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	cert, err := LoadOrCreateCertificate(certs)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{cluster: newCluster(t, Config{}), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	port := NewPort(testLog(t), b.gate)
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
		other, err := LoadOrCreateCertificate(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		_, err = dialAddress(ctx, "tls:"+ln.Addr().String(), CertDigest(other))
		if err == nil || !strings.Contains(err.Error(), "the certificate has digest "+digest) {
			t.Errorf("dialAddress() = %v, want a sentence with both digests", err)
		}
		if _, err = dialAddress(ctx, "tls:"+ln.Addr().String(), ""); err == nil {
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
		again, err := LoadOrCreateCertificate(certs)
		if err != nil || CertDigest(again) != digest {
			t.Errorf("digest %s, %v after loading again, want %s", CertDigest(again), err, digest)
		}
		if st, err := os.Stat(filepath.Join(certs, certFile)); err != nil || st.Mode() != 0o600 {
			t.Errorf("certificate has mode %v, %v; want 0600", st.Mode(), err)
		}
	})
}

func TestCertificateThatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, certFile), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateCertificate(dir); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("LoadOrCreateCertificate() = %v, want an error that names the file", err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{})
	b := &bed{cluster: c}
	await(t, "the socket", func() bool { _, err := os.Stat(c.socket); return err == nil })
	st, err := os.Stat(c.socket)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket has mode %v, %v; want 0600", st.Mode(), err)
	}
	err = NewPort(slog.New(slog.DiscardHandler), c.gate).ServeUnix(context.Background(), c.socket)
	if corral.KindOf(err) != corral.Conflict {
		t.Errorf("a second port on the socket: %v, want a conflict", err)
	}
	b.cluster.stop()
	absent(t, c.socket)

	// What a killed corrald leaves behind is replaced.
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	again := newClusterAt(t, Config{}, c.socket)
	again.work(t, workerConfig("tag/0", again.address()))
	again.awaitWorkers(t, 1)
}

// raw connects without keeping to any protocol.
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

// greet is greet with a port that has the time to answer.
func (c *cluster) greet(t *testing.T, h *hello) (g *greeting, err error) {
	t.Helper()
	await(t, "an answer", func() bool {
		g, err = greet(context.Background(), c.raw(t), h)
		return err == nil || errors.Is(err, ErrRefused)
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

func goodHello() *hello {
	return &hello{
		Version: Version, Role: RoleWorker, Tag: "tag", Token: testToken, ID: "tag/0", Instance: "i",
		Holder: "pilot", CPUs: 1, MemoryMiB: 1, LeftMS: 1000,
	}
}

func TestPortAnswersNothingButTheProtocol(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{})
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	wide := goodHello()
	wide.Token = strings.Repeat("x", maxHello)
	foreign := goodHello()
	foreign.ID = "other/0"
	tests := []struct {
		name string
		send []byte
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"a frame of 2 GiB", append(huge, "{}"...)},
		{"a hello of more than 4 KiB", frame(t, message{Type: typeHello, Hello: wide})},
		{"no JSON", append(binary.BigEndian.AppendUint32(nil, 4), "\x00\x01\x02\x03"...)},
		{"another message", frame(t, message{Type: typeResults})},
		{"an unknown message", frame(t, message{Type: "shell"})},
		{"a hello without body", frame(t, message{Type: typeHello})},
		{"a worker id of another attempt", frame(t, message{Type: typeHello, Hello: foreign})},
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

func TestPortRefusesWithASentence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{})
	tests := []struct {
		name  string
		adapt func(*hello)
		kind  corral.Kind
		want  string
	}{
		{"wrong version", func(h *hello) { h.Version = 99 }, corral.Invalid, "version 99 of the worker protocol"},
		{"wrong token", func(h *hello) { h.Token = "guess" }, corral.Unauthenticated, "the token is not that of tag"},
		{"no token", func(h *hello) { h.Token = "" }, corral.Unauthenticated, "the token is not that of tag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := goodHello()
			tt.adapt(h)
			_, err := c.greet(t, h)
			if !errors.Is(err, ErrRefused) || corral.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("greet() = %v, want %s with %q", err, tt.kind, tt.want)
			}
		})
	}
}

func TestRegisteredWorkerMustKeepToTheProtocol(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{})
	for _, m := range []*message{
		{Type: typeAssign, Jobs: []execution.Job{sh(1, "/d", "x")}},
		{Type: typeResults, Results: []report{{N: 1, Result: execution.Result{Status: "great"}}}},
		{Type: typeHello, Hello: goodHello()},
	} {
		g, err := c.greet(t, goodHello())
		if err != nil {
			t.Fatal(err)
		}
		g.send(&message{Type: typeHeld})
		g.send(m)
		_ = g.nc.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := g.recv(maxFrame); !errors.Is(err, io.EOF) {
			t.Errorf("after %s: %v, want the connection closed", m.Type, err)
		}
		g.close()
	}
}

func TestGateThatFailsIsNotARefusal(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	go NewPort(slog.New(slog.DiscardHandler), brokenGate{}).serveConn(context.Background(), theirs)
	_, err := greet(context.Background(), ours, goodHello())
	if errors.Is(err, ErrRefused) || corral.KindOf(err) != corral.Unavailable || strings.Contains(err.Error(), "disk") {
		t.Errorf("greet() = %v, want unavailable, without what is wrong inside", err)
	}
}

type brokenGate struct{}

func (brokenGate) Admit(context.Context, Credentials) (Admission, error) {
	return Admission{}, errors.New("disk of the store is full")
}
func (brokenGate) Lease(context.Context, corral.JobID, string) error          { return nil }
func (brokenGate) Report(context.Context, corral.JobID, string, string) error { return nil }

func (brokenGate) LoseHost(context.Context, corral.JobID, corral.LostHost) error { return nil }

func TestEncodeAssignCutsBatches(t *testing.T) {
	t.Parallel()
	var jobs []*execution.Job
	for seq := range int64(10) {
		j := sh(seq, "/d", strings.Repeat("x", 300<<10))
		jobs = append(jobs, &j)
	}
	frames, tooLarge := encodeAssign(jobs)
	if len(tooLarge) != 0 {
		t.Errorf("%d jobs are too large", len(tooLarge))
	}
	var got []execution.Job
	for _, f := range frames {
		if len(f) > maxBatch+1000 {
			t.Errorf("a frame has %d bytes", len(f))
		}
		m, err := decode(f)
		if err != nil || m.Type != typeAssign {
			t.Fatalf("decode() = %+v, %v", m, err)
		}
		got = append(got, m.Jobs...)
	}
	if len(frames) < 3 {
		t.Errorf("%d frames, want several", len(frames))
	}
	for i, j := range jobs {
		if diff := cmp.Diff(*j, got[i]); diff != "" {
			t.Fatalf("job %d (-sent +got):\n%s", i, diff)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, m := range []message{
		{Type: typeHello, Hello: goodHello()},
		{Type: typeWelcome, Welcome: &welcome{Now: time.Unix(1, 0), LeaseMS: 1, HeartbeatMS: 1}},
		{Type: typeHeld, Held: []heldJob{{execution.Key{Run: 1, Seq: 2}, true, 1, 1}}, Results: []report{result(1, 2)}},
		{Type: typeAssign, Jobs: []execution.Job{sh(1, "/d", "x")}},
		{Type: typeReturned, Keys: keys(1, 2), Reason: "why"},
		{Type: typeRefuse, Kind: corral.Conflict, Reason: "no"},
		{Type: typeCallBack, N: 1, Addresses: []string{"10.0.0.2:40000"}, Nonce: testNonce},
		{Type: typeCalled, N: 1, Addresses: []string{"10.0.0.2:40000"}},
		{Type: typeCalled, N: 2, Kind: corral.Failed, Reason: "10.0.0.2:40000: timed out"},
	} {
		body, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte{0, 0, 0, 9, '{', '"'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			frame, err := readFrame(r, nil, maxHello)
			if err != nil {
				return
			}
			if len(frame) > maxHello {
				t.Fatalf("a frame of %d bytes was read", len(frame))
			}
			m, err := decode(frame)
			if err != nil {
				continue
			}
			if m.Type == typeHello && (m.Hello == nil || m.Hello.Tag == "") {
				t.Fatalf("decode accepts %q", frame)
			}
			again, err := json.Marshal(m)
			if err != nil {
				t.Fatalf("what was decoded from %q cannot be encoded: %v", frame, err)
			}
			if _, err := decode(again); err != nil {
				t.Fatalf("%q becomes %q: %v", frame, again, err)
			}
		}
	})
}

func TestReasonsAreOneLine(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"no room": "no room",
		errors.Join(io.EOF, os.ErrClosed).Error(): "EOF; file already closed",
		"said\n":                            "said",
		strings.Repeat("a", maxReasonLen+1): strings.Repeat("a", maxReasonLen),
	} {
		if got := clip(reason); got != want {
			t.Errorf("clip(%q) = %q, want %q", reason, got, want)
		}
	}
}
