//go:build sites

package schedd

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// folder returns a short path that is removed when the test ends, because a socket's path has at most 107 bytes.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "schedd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// patience exceeds every wait of these tests: on a busy machine a schedd has been observed not to answer for two
// minutes.
const patience = 10 * time.Minute

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // a machine may be slow or busy with other tests
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until done returns true. Checks take at most a fifth of the time, because each query of HTCondor
// starts a process.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx := soon(t)
	for {
		from := time.Now()
		if done() {
			return
		}
		select {
		case <-time.After(max(20*time.Millisecond, 4*time.Since(from))):
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// A site is a pool with its own workers.
type site struct {
	testing.TB
	dir  string
	pool *condor.Pool
	at   netip.AddrPort
	said log
}

// A log records the queues' log output.
type log struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newSite(t testing.TB) *site {
	t.Helper()
	return newSiteWith(t, "")
}

// newSiteWith is like newSite, but with additional configuration lines.
func newSiteWith(t testing.TB, extra string) *site {
	t.Helper()
	s := &site{TB: t, dir: folder(t)}
	var err error
	if s.at, err = condor.FreeAddress(netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	s.pool, err = condor.NewPool(condor.PoolConfig{Dir: filepath.Join(s.dir, "p"), Release: os.Getenv(releaseEnv), Address: s.at, Extra: extra})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := s.pool.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := s.pool.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.explain)
	return s
}

// explain prints HTCondor's logs if the test failed.
func (s *site) explain() {
	if !s.Failed() {
		return
	}
	queue, err := s.pool.Tools().Run(soon(s), nil, "condor_q", "-af:h", "ClusterId", "ProcId", "JobStatus", "NumJobStarts", "CorralSeq", "HoldReason")
	s.Logf("queue: %s %v", queue, err)
	for _, line := range s.events() {
		if !strings.HasPrefix(line, "028") {
			s.Log(line)
		}
	}
	logs, _ := filepath.Glob(filepath.Join(s.dir, "*", "log", "S*Log")) // of the schedd and the startds; never fails
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		s.Logf("%s ends with\n%s", name, text[max(0, len(text)-20_000):])
	}
}

// events returns the first lines of the events in the logs of all jobs.
func (s *site) events() []string {
	s.Helper()
	logs, _ := filepath.Glob(filepath.Join(s.dir, "q", "*", "log")) // never fails
	var events []string
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			s.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if len(line) > 3 && line[3] == ' ' && line[0] == '0' {
				events = append(events, strings.TrimSpace(line))
			}
		}
	}
	return events
}

// glidein starts a worker as the pilot does; change may modify the worker's configuration.
func (s *site) glidein(name string, cpus int, change func(*condor.GlideinConfig)) *exec.Cmd {
	s.Helper()
	now := time.Now()
	c := condor.GlideinConfig{
		Dir: filepath.Join(s.dir, name), Release: os.Getenv(releaseEnv), Name: name, Identity: condor.GlideinIdentity(1),
		Network: condor.GlideinNetwork{Collector: s.at, Address: s.at.Addr()}, Cpus: cpus, MemoryMiB: int64(cpus) * 128,
		Times: condor.GlideinTimes{
			Idle: 10 * time.Minute, Retire: now.Add(time.Hour), End: now.Add(time.Hour), Update: 2 * time.Second,
		},
		RuntimeAttribute: "CorralRuntime",
		Attributes: classad.Ad{
			"CorralCluster": "default", "CorralSite": "local", "CorralGlidein": 1, "CorralAttempt": 1, "CorralWorker": name + "/0",
			"CorralHost": name, "CorralPilot": os.Getenv(pilotEnv), "CorralCpus": cpus, "CorralMemoryMiB": cpus * 128,
		},
	}
	if change != nil {
		change(&c)
	}
	token, err := s.pool.Mint(1, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	config, err := c.Prepare(token.Secret())
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.Release, "sbin", "condor_master"), "-f")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG="+config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		if pid := daemonOf(c.Dir, "condor_procd"); pid != 0 { // its master was killed, which it would not notice for ten minutes
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return cmd
}
