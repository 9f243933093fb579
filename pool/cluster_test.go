package pool

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// TestMain lets the test binary be a worker: a process that a test can kill.
func TestMain(m *testing.M) {
	if address := os.Getenv("POOL_TEST_WORKER"); address != "" {
		cfg := workerConfig(os.Getenv("POOL_TEST_ID"), address)
		cfg.Instance = os.Getenv("POOL_TEST_INSTANCE")
		_, err := RunWorker(context.Background(), slog.New(slog.DiscardHandler), cfg)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openGate admits everybody whose token is "secret".
type openGate struct {
	d *Dispatcher

	mu      sync.Mutex
	holders map[corral.JobID]string
	reports []string
}

const testToken = "secret"

func (g *openGate) Admit(_ context.Context, c Credentials) (Admission, error) {
	const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
	if c.TokenDigest != digest {
		return Admission{}, corral.Errorf(corral.Unauthenticated, "the token is not that of %s", c.Tag)
	}
	return Admission{Attempt: 1, Glidein: 1, Cluster: 1, Dispatcher: g.d}, nil
}

func (g *openGate) Lease(_ context.Context, attempt corral.JobID, holder string) error {
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

// A cluster is a dispatcher behind a real port on a Unix socket.
type cluster struct {
	d      *Dispatcher
	gate   *openGate
	socket string
	stop   func()
	change chan struct{}
}

func testLog(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newCluster(tb testing.TB, cfg Config) *cluster {
	dir, err := os.MkdirTemp("", "pool") // short: the path of a socket has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return newClusterAt(tb, cfg, filepath.Join(dir, "s"))
}

func newClusterAt(tb testing.TB, cfg Config, socket string) *cluster {
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
	c.d = NewDispatcher(lg, cfg)
	c.gate = &openGate{d: c.d, holders: map[corral.JobID]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewPort(lg, c.gate).ServeUnix(ctx, c.socket) }()
	c.stop = sync.OnceFunc(func() {
		c.d.Close()
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(c.stop)
	return c
}

func workerConfig(id, address string) WorkerConfig {
	tag := filepath.Dir(id)
	return WorkerConfig{
		ID: id, Instance: "first", Holder: "pilot", Tag: tag, Token: testToken,
		Addresses: []string{address}, CPUs: 1, MemoryMiB: 1000, EndsIn: time.Hour,
	}
}

// child starts a worker as a process of its own, which the test may kill.
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

// await polls until what holds.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(20 * time.Second)
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
	if err := os.Mkdir(filepath.Join(dir, dataDir), 0o777); err != nil {
		tb.Fatal(err)
	}
	return dir
}
