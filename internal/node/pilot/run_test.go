package pilot_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/programs"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// program is the pilot, built once for all tests.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time is spent waiting for infrequent actions of other programs.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "pilot-test-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // some pilots run as another user
		panic(err)
	}
	if program, err = programs.CopyPilot(dir); err != nil {
		panic(err)
	}
	status := m.Run()
	for _, end := range atEnd {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// atEnd stops the services that tests of sites share.
var atEnd []func() error

// sloth is the longest delay that a busy machine is expected to cause.
const sloth = 2 * time.Minute

const (
	tag   = "pilot-7"
	token = "the-secret-token"
)

// lease is the time for which a worker may be silent, as a worker on a busy machine sometimes is. A stopped worker
// counts as hung after two thirds of this time.
const lease = 30 * time.Second

// A service is corrald as a pilot sees it: a worker port with one cluster behind it, and one attempt.
type service struct {
	t          *testing.T
	tag        string // of the attempt
	socket     string
	dispatcher *asked
	results    chan execution.Result
	returned   chan struct{} // receives a token each time jobs are returned without a result
	stop       func()        // stops the port and the dispatcher; for crashes

	mu      sync.Mutex // guards the fields below
	holder  string     // holder of the lease
	session string     // digest of the session's secret
	deaf    bool       // workers are neither admitted nor refused
	phases  []string
	told    []string // phases with their reasons
	visits  int
}

// asked is a dispatcher with its pilots' links: a request goes to both.
type asked struct {
	*dispatch.Dispatcher
	links *port.Links
}

func (a *asked) Drain(attempt corral.JobID) { a.ask(attempt, corral.AskDrain) }
func (a *asked) Leave(attempt corral.JobID) { a.ask(attempt, corral.AskCancel) }

func (a *asked) ask(attempt corral.JobID, ask corral.Ask) {
	a.links.Ask(attempt, ask)
	a.Ask(attempt, ask)
}

func newService(t *testing.T) *service {
	t.Helper()
	dir, err := os.MkdirTemp("", "port-") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &service{t: t, tag: tag, socket: filepath.Join(dir, "s"), results: make(chan execution.Result, 100), returned: make(chan struct{}, 100)}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start opens the port, like a restarted corrald.
func (s *service) start() {
	lg := slog.New(slog.NewTextHandler(s.t.Output(), nil))
	cfg := dispatch.Config{Lease: lease, Margin: time.Second, Heartbeat: 2 * time.Second}
	links := port.NewLinks(cfg.Terms())
	cfg.Asked = links.Asked
	s.dispatcher = &asked{dispatch.New(lg, cfg), links}
	s.dispatcher.Attach(1, s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- port.New(lg, s, broker.Reach).ServeUnix(ctx, s.socket) }()
	eventually(s.t, "the port", func() bool { // otherwise giveAway might find no socket, and pilots of another user would have no route
		_, err := os.Stat(s.socket)
		return err == nil
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		s.dispatcher.links.Close()
		s.dispatcher.Close()
	})
}

// Admit, Lease and Report are the gate's methods.
func (s *service) Admit(_ context.Context, c port.Credentials) (port.Admission, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf && c.Role == wire.RoleWorker {
		return port.Admission{}, corral.Errorf(corral.Unavailable, "not now")
	}
	s.visits++
	digest := sha256.Sum256([]byte(token))
	if c.Tag != s.tag || c.TokenDigest != hex.EncodeToString(digest[:]) {
		return port.Admission{}, corral.Errorf(corral.Unauthenticated, "the token is not this attempt's")
	}
	if c.Role == wire.RoleWorker && c.Holder != s.holder {
		return port.Admission{}, corral.Errorf(corral.Forbidden, "its lease is held by another pilot")
	}
	if c.Session == "" || c.Role == wire.RoleWorker && c.Session != s.session {
		return port.Admission{}, corral.Errorf(corral.Unauthenticated, "the secret is not that of the pilot")
	}
	return port.Admission{Attempt: 7, Glidein: 3, Cluster: 1, Links: s.dispatcher.links, Dispatcher: s.dispatcher.Dispatcher}, nil
}

func (s *service) Lease(_ context.Context, _ corral.JobID, holder, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != "" && (s.holder != holder || s.session != session) {
		return corral.Errorf(corral.Conflict, "another pilot has the lease")
	}
	s.holder, s.session = holder, session
	return nil
}

func (s *service) Report(_ context.Context, _ corral.JobID, phase, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, phase+": "+reason)
	s.phases = append(s.phases, phase)
	return nil
}

func (s *service) LoseHost(ctx context.Context, attempt corral.JobID, lost corral.LostHost) error {
	return s.Report(ctx, attempt, "node failed", lost.String())
}

// Assigned, Finished and Returned are the sink's methods.
func (s *service) Assigned(string, []execution.Key) error { return nil }

func (s *service) Finished(results []execution.Result) error {
	for _, r := range results {
		s.results <- r
	}
	return nil
}

func (s *service) Returned(keys []execution.Key, started bool, _ time.Time, reason string) {
	s.t.Logf("returned %v, started %v: %s", keys, started, reason)
	s.returned <- struct{}{}
}

// workers returns the registered workers once n of them are connected.
func (s *service) workers(n int) []corral.Worker {
	s.t.Helper()
	var found []corral.Worker
	eventually(s.t, fmt.Sprintf("%d workers", n), func() bool {
		found = nil
		for _, w := range s.dispatcher.Workers() {
			if w.Connected {
				found = append(found, w)
			}
		}
		return len(found) == n
	})
	return found
}

// submit queues a task that runs a shell command. It returns the run's directory.
func (s *service) submit(line string, estimate time.Duration) (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.dispatcher.Submit([]execution.Job{{Run: 1, Seq: time.Now().UnixNano(), Dir: dir, CPUs: 1,
		Tasks: []execution.Task{{ID: "task", Attempt: 1, Argv: []string{"/bin/sh", "-c", line}, Estimate: estimate}}}})
	return dir
}

// patience limits waits for events that take some seconds on an idle machine.
const patience = 2 * time.Minute

// eventually waits until ok returns true. The pauses grow, because some checks run a program.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for gap := 10 * time.Millisecond; !ok(); gap = min(gap*3/2, 300*time.Millisecond) {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(gap):
		}
	}
}

// within returns the next value of c.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case v := <-c:
		return v
	case <-deadline.C:
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable: Fatalf does not return")
	}
}

// A site is a job's directory and the pilots that were started there.
type site struct {
	t         *testing.T
	root, dir string
	as        *syscall.Credential // user that pilots run as; nil: the current user
}

// newSite puts an order for a one-CPU pilot into a directory; change may modify the order.
func newSite(t *testing.T, s *service, change func(*jobfiles.PilotOrder)) site {
	t.Helper()
	root := t.TempDir()
	p := jobfiles.PilotOrder{Token: token, Addresses: []string{"unix:" + s.socket},
		Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 200, Walltime: corral.Seconds(10 * time.Minute)}}
	if change != nil {
		change(&p)
	}
	b, err := jobfiles.Order{Tag: tag, Root: root, Pilot: &p}.Encode()
	dir := filepath.Join(root, "jobs", tag)
	if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, jobfiles.File), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	return site{t: t, root: root, dir: dir}
}

// A run is a pilot process.
type run struct {
	site
	cmd  *exec.Cmd
	exit chan int // receives its exit status
}

// start starts a pilot in its own session, in which no process may be left at the test's end.
func (s site) start() *run {
	s.t.Helper()
	return s.startUnder(program, "run", "--dir", s.dir)
}

func (s site) startUnder(name string, args ...string) *run {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = s.t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.as}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	r := &run{site: s, cmd: cmd, exit: make(chan int, 1)}
	go func() {
		_ = cmd.Wait() // some tests expect a status other than 0
		if state := cmd.ProcessState; !state.Exited() {
			s.t.Logf("the pilot was killed: %s", state)
		}
		r.exit <- cmd.ProcessState.ExitCode()
	}()
	s.t.Cleanup(func() {
		for _, pid := range lasting(func() []int { return sessionOf(cmd.Process.Pid) }) {
			s.t.Errorf("process %d was left: %s", pid, commandLine(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

// report waits for the pilot's end and checks the exit status and the report.
func (r *run) report(exit int, outcome corral.Outcome, transient bool) jobfiles.Report {
	r.t.Helper()
	if got := within(r.t, "the pilot's end", r.exit); got != exit {
		r.t.Errorf("exit status %d, want %d", got, exit)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, jobfiles.ReportFile))
	if err != nil {
		r.t.Fatal(err)
	}
	rep, err := jobfiles.DecodeReport(b)
	if err != nil || rep.Outcome != outcome || rep.Transient != transient {
		r.t.Errorf("report %+v, %v, want %s, transient %v", rep, err, outcome, transient)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "scratch")); err == nil {
		r.t.Error("the scratch directory was left")
	}
	return rep
}

// statOf returns the fields of /proc/PID/stat from the state on, or nil if the process no longer exists.
func statOf(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 4 || f[0] == "Z" || f[0] == "X" {
		return nil
	}
	return f
}

func alive(pid int) bool { return statOf(pid) != nil }

// lasting repeats find until it finds nothing or patience is over, and returns the last result. On a busy machine a
// killed process may remain for a while.
func lasting(find func() []int) (pids []int) {
	for by := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		if pids = find(); len(pids) == 0 || time.Now().After(by) {
			return pids
		}
	}
}

// stays reports whether one of the processes exists and does not end.
func stays(pids ...int) bool {
	return len(lasting(func() []int { return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !alive(pid) }) })) > 0
}

func sessionOf(leader int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if f := statOf(pid); f != nil && f[3] == strconv.Itoa(leader) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func commandLine(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(b), "\x00", " ")
}

// pidFrom waits until a task has written its process id.
func pidFrom(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+file, func() bool {
		b, err := os.ReadFile(file)
		line, whole := strings.CutSuffix(string(b), "\n")
		if err == nil && whole {
			pid, err = strconv.Atoi(line)
		}
		return err == nil && whole
	})
	return pid
}

// escaping is a task with a child that leaves its session and process group, and writes its process id to file.
func escaping(file string) string {
	return "setsid sh -c 'echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 1000' & exec sleep 1000"
}
