package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/worker"
)

// hostRoles are the roles of the test binary on a host behind a firewall.
var hostRoles = map[string]func() error{}

// TestMain lets the test binary act as a worker, in a process that a test can kill, or play a role on another host.
func TestMain(m *testing.M) {
	if act := hostRoles[os.Getenv("POOL_TEST_ROLE")]; act != nil {
		if err := act(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if address := os.Getenv("POOL_TEST_WORKER"); address != "" {
		cfg := workerConfig(os.Getenv("POOL_TEST_ID"), address)
		cfg.Instance, cfg.Scratch = os.Getenv("POOL_TEST_INSTANCE"), os.Getenv("POOL_TEST_SCRATCH")
		if dir := os.Getenv("POOL_TEST_HIDE"); dir != "" { // this process has its own mount namespace
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
				fmt.Fprintln(os.Stderr, "hiding", dir, err)
				os.Exit(1)
			}
		}
		_, err := worker.Run(context.Background(), slog.New(slog.DiscardHandler), cfg)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openGate admits every worker whose token is "secret".
type openGate struct {
	d     *dispatch.Dispatcher
	links *port.Links
	cpus  int // CPUs of the attempt; 0: any number

	mu      sync.Mutex
	holders map[corral.JobID]string
	reports []string
}

const testToken = "secret"

func newGate(lg *slog.Logger, cfg dispatch.Config) *openGate {
	links := port.NewLinks(cfg.Terms())
	cfg.Asked = links.Asked
	return &openGate{d: dispatch.New(lg, cfg), links: links, holders: map[corral.JobID]string{}}
}

// ask requests attempt 1 to drain or leave, as corrald would.
func (g *openGate) ask(ask corral.Ask) {
	g.links.Ask(1, ask)
	g.d.Ask(1, ask)
}

// A doorway is a listener whose connections are supplied by a test.
type doorway struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// open makes port serve the doorway's connections until ctx ends.
func open(ctx context.Context, port *port.Port) *doorway {
	w := &doorway{conns: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = port.Serve(ctx, w) }()
	return w
}

func (w *doorway) Accept() (net.Conn, error) {
	select {
	case nc := <-w.conns:
		return nc, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *doorway) Close() error   { w.once.Do(func() { close(w.closed) }); return nil }
func (w *doorway) Addr() net.Addr { return &net.UnixAddr{} }

func (g *openGate) Admit(_ context.Context, c port.Credentials) (port.Admission, error) {
	const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
	if c.TokenDigest != digest {
		return port.Admission{}, corral.Errorf(corral.Unauthenticated, "the token is not that of %s", c.Tag)
	}
	return port.Admission{Attempt: 1, Glidein: 1, Cluster: 1, CPUs: g.cpus, Links: g.links, Dispatcher: g.d}, nil
}

func (g *openGate) Lease(_ context.Context, attempt corral.JobID, holder, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if have := g.holders[attempt]; have != "" && have != holder {
		return corral.Errorf(corral.Conflict, "%s has it", have)
	}
	g.holders[attempt] = holder
	return nil
}

func (g *openGate) Report(_ context.Context, _ corral.JobID, phase, reason string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reports = append(g.reports, phase+": "+reason)
	return nil
}

func (g *openGate) LoseHost(_ context.Context, _ corral.JobID, lost corral.LostHost) error {
	return g.Report(context.Background(), 1, "lost", lost.String())
}

// taps is a listener whose connections can be cut by a test.
type taps struct {
	net.Listener
	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func (l *taps) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, nc)
	}
	return nc, err
}

func (l *taps) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, nc := range l.conns {
		nc.Close()
	}
}

// A cluster is a dispatcher behind a real port on a Unix socket.
type cluster struct {
	d      *dispatch.Dispatcher
	gate   *openGate
	port   *port.Port
	socket string
	taps   *taps
	stop   func()
	change chan struct{}
}

func testLog(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newCluster(tb testing.TB, cfg dispatch.Config) *cluster {
	dir, err := os.MkdirTemp("", "pool") // short, because a socket's path has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return newClusterAt(tb, cfg, filepath.Join(dir, "s"))
}

// newClusterAt sets a lease that lets workers keep their tasks on a busy machine, unless the test sets its own.
func newClusterAt(tb testing.TB, cfg dispatch.Config, socket string) *cluster {
	if cfg.Lease == 0 {
		cfg.Lease, cfg.Heartbeat = 5*time.Minute, 3*time.Second
	}
	c := &cluster{socket: socket, change: make(chan struct{}, 1)}
	cfg.OnChange = func() {
		select {
		case c.change <- struct{}{}:
		default:
		}
	}
	lg := testLog(tb)
	if _, ok := tb.(*testing.B); ok {
		lg = slog.New(slog.DiscardHandler)
	}
	c.gate = newGate(lg, cfg)
	c.d = c.gate.d
	c.port = port.New(lg, c.gate, broker.Reach)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ln, err := port.ListenUnix(c.socket)
	if err != nil {
		tb.Fatal(err)
	}
	c.taps = &taps{Listener: ln}
	go func() { done <- c.port.Serve(ctx, c.taps) }()
	c.stop = sync.OnceFunc(func() {
		c.gate.links.Close()
		c.d.Close()
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		os.Remove(c.socket)
	})
	tb.Cleanup(c.stop)
	return c
}

func workerConfig(id, address string) worker.Config {
	tag := filepath.Dir(id)
	return worker.Config{
		ID: id, Instance: "first", Holder: "pilot", Tag: tag, Token: testToken,
		Addresses: []string{address}, Resources: corral.Resources{CPUs: 1, MemoryMiB: 1000}, EndsIn: time.Hour,
	}
}

// child starts a worker as a separate process, which the test may kill.
func (c *cluster) child(tb testing.TB, id string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "POOL_TEST_WORKER=unix:"+c.socket, "POOL_TEST_ID="+id, "POOL_TEST_INSTANCE="+id+time.Now().String())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (c *cluster) awaitWorkers(tb testing.TB, n int) {
	tb.Helper()
	await(tb, "workers", func() bool {
		connected := 0
		for _, w := range c.d.Workers() {
			if w.Connected {
				connected++
			}
		}
		return connected == n
	})
}

// patience limits waits for events that take some seconds on an idle machine.
const patience = 3 * time.Minute

// await polls until holds returns true.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("gave up waiting for %s", what)
		}
	}
}

func runDir(tb testing.TB) string {
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, executor.DataDir), 0o777); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// A hand is a worker that runs in the test's own process.
type hand struct {
	cancel context.CancelFunc
	left   chan struct{}
	reason worker.Reason
	err    error
}

// work starts a worker, which leaves at the latest when the test ends.
func (c *cluster) work(t *testing.T, cfg worker.Config) *hand {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &hand{cancel: cancel, left: make(chan struct{})}
	go func() {
		defer close(h.left)
		h.reason, h.err = worker.Run(ctx, testLog(t), cfg)
	}()
	t.Cleanup(func() {
		cancel()
		<-h.left
	})
	return h
}

func (c *cluster) address() string { return "unix:" + c.socket }

// A bed is a cluster with one worker and one attached run.
type bed struct {
	*cluster
	dir  string
	sink *recorder
	hand *hand
}

func newBed(t *testing.T, cfg dispatch.Config, adapt func(*worker.Config)) *bed {
	b := &bed{cluster: newCluster(t, cfg), dir: runDir(t), sink: newRecorder()}
	b.d.Attach(1, b.sink)
	wc := workerConfig("tag/0", b.address())
	if adapt != nil {
		adapt(&wc)
	}
	b.hand = b.work(t, wc)
	return b
}

// idle reports whether no worker holds a job.
func (b *bed) idle() bool { _, held := load(b.d); return held == 0 }

// runOne runs one task and returns its result and its directory.
func (b *bed) runOne(t *testing.T, task execution.Task) (execution.Result, string) {
	t.Helper()
	b.d.Submit([]execution.Job{{Run: 1, Seq: 1, Dir: b.dir, CPUs: 1, MemoryMiB: 100, Tasks: []execution.Task{task}}})
	return b.sink.awaitResults(t, 1)[1], filepath.Join(b.dir, executor.TasksDir, fmt.Sprintf("%s.%d", task.ID, task.Attempt))
}

func (b *bed) data(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(b.dir, executor.DataDir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func absent(t *testing.T, elem ...string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(elem...)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", filepath.Join(elem...), err)
	}
}

// load returns the numbers of queued jobs and of jobs held by workers.
func load(d *dispatch.Dispatcher) (queued, held int) {
	waiting, held := d.Load()
	for _, c := range waiting {
		queued += c.Jobs
	}
	return queued, held
}
