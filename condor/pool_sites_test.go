//go:build sites

package condor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"golang.org/x/sys/unix"
)

func TestPoolStartsSoon(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	start := time.Now()
	if err := p.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	t.Logf("a pool takes jobs after %v", took.Round(time.Millisecond))
	if took > 2*time.Minute { // about a second on an idle machine
		t.Errorf("a pool takes jobs after %v, want less than two minutes", took)
	}
	h, err := p.Health(soon(t))
	if err != nil || !h.OK() {
		t.Errorf("Health() = %+v, %v, want all daemons", h, err)
	}
	if err := p.Start(soon(t)); err != nil {
		t.Errorf("starting a pool that runs: %v", err)
	}
}

func TestPoolIsPrivate(t *testing.T) {
	t.Parallel()
	p := common(t)
	for _, name := range []string{p.config.Dir, filepath.Join(p.config.Dir, "keys", signingKey)} {
		info, err := os.Stat(name)
		if err != nil || info.Mode()&0o077 != 0 {
			t.Errorf("%s: %v, %v, want nothing for others", name, info, err)
		}
	}
}

// TestToolsLeaveNoTraces checks the location of the folder by which a tool proves its owner: a killed tool leaves it
// there.
func TestToolsLeaveNoTraces(t *testing.T) {
	t.Parallel()
	p := common(t)
	cmd := p.Tools().command(soon(t), "condor_ping", "-debug", "-type", "schedd", "WRITE")
	cmd.Env = append(p.tools.env(), "_CONDOR_TOOL_DEBUG=D_SECURITY:2")
	out, err := cmd.CombinedOutput()
	if want := "used dir " + p.config.Dir + "/lock/FS_"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("condor_ping: %v, want %q in what it says:\n%s", err, want, out)
	}
}

func TestRestartKeepsTheQueue(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	cluster, err := p.Tools().Submit(soon(t), Submit{Executable: "/bin/true", Procs: []Proc{{}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := idle(t, p, cluster); got != 2 {
		t.Fatalf("%d jobs wait, want 2", got)
	}
	if err := p.Stop(soon(t)); err != nil {
		t.Fatal(err)
	}
	noDaemons(t, p)
	if h, err := p.Health(soon(t)); err != nil || h.Master != 0 || h.OK() {
		t.Errorf("Health() of a stopped pool = %+v, %v", h, err)
	}
	if err := p.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := idle(t, p, cluster); got != 2 {
		t.Errorf("%d jobs wait after a restart, want 2", got)
	}
	if _, err := p.Tools().Run(soon(t), nil, "condor_rm", strconv.Itoa(cluster)); err != nil {
		t.Error(err)
	}
	eventually(t, "removal", func() (bool, error) { return idle(t, p, cluster) == 0, nil })
}

// idle counts a cluster's waiting jobs.
func idle(t *testing.T, p *Pool, cluster int) int {
	t.Helper()
	ads, err := p.Tools().Query(soon(t), "condor_q", nil, []string{"ClusterId", "JobStatus"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ad := range ads {
		id, _ := ad.Int("ClusterId")
		if status, _ := ad.Int("JobStatus"); int(id) == cluster && status == 1 {
			n++
		}
	}
	return n
}

func TestStartAfterMasterWasKilled(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	cluster, err := p.Tools().Submit(soon(t), Submit{Executable: "/bin/true", Procs: []Proc{{}}})
	if err != nil {
		t.Fatal(err)
	}
	master, ok := p.master()
	if !ok {
		t.Fatal("no master")
	}
	defer master.close()
	if err := master.signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the master", func() (bool, error) { return master.ended(), nil })
	if err := p.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got := idle(t, p, cluster); got != 1 {
		t.Errorf("%d jobs wait after kill -9 of the master, want 1", got)
	}
}

// TestDaemonsComeBack kills daemons as a crash or the kernel may do: the master restarts them.
func TestDaemonsComeBack(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	cluster, err := p.Tools().Submit(soon(t), Submit{Executable: "/bin/true", Procs: []Proc{{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"condor_schedd", "condor_collector"} {
		from := time.Now()
		killed, ok := daemon(p, name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		if err := killed.signal(unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" again", func() (bool, error) {
			again, ok := daemon(p, name)
			if ok {
				again.close()
			}
			return ok && again.pid != killed.pid, nil
		})
		killed.close()
		eventually(t, "health", func() (bool, error) {
			h, err := p.Health(soon(t))
			return h.OK(), err
		})
		t.Logf("all there %v after kill -9 of %s", time.Since(from).Round(time.Millisecond), name)
	}
	if got := idle(t, p, cluster); got != 1 {
		t.Errorf("%d jobs wait after kill -9, want 1", got)
	}
}

// daemon returns a pool's process with that program; the caller closes it. Forked copies of a daemon, which answer
// queries, do not count.
func daemon(p *Pool, name string) (found process, ok bool) {
	for _, d := range running(p.tools.Config) {
		if program(strconv.Itoa(d.pid)) == name && program(parent(d.pid)) != name && !ok {
			found, ok = d, true
			continue
		}
		d.close()
	}
	return found, ok
}

// program returns the program of a process, "." if it has ended.
func program(pid string) string {
	exe, _ := os.Readlink(filepath.Join("/proc", pid, "exe"))
	return filepath.Base(exe)
}

func parent(pid int) string {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
	ppid, _, _ := strings.Cut(rest, "\n")
	return ppid
}

// A master in the background may hold its output for a while on a busy machine.
func TestSlowMasterStart(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	slow := folder(t)
	real, err := filepath.Glob(filepath.Join(release, "sbin", "*"))
	if err != nil || len(real) == 0 {
		t.Fatalf("no programs in %s: %v", release, err)
	}
	errs := []error{os.Mkdir(filepath.Join(slow, "sbin"), 0o755)}
	for _, name := range []string{"bin", "lib", "libexec"} {
		errs = append(errs, os.Symlink(filepath.Join(release, name), filepath.Join(slow, name)))
	}
	for _, name := range real {
		if filepath.Base(name) != "condor_master" {
			errs = append(errs, os.Symlink(name, filepath.Join(slow, "sbin", filepath.Base(name))))
		}
	}
	script := "#!/bin/sh\nsleep 3 &\nexec " + filepath.Join(release, "sbin", "condor_master") + ` "$@"` + "\n"
	errs = append(errs, os.WriteFile(filepath.Join(slow, "sbin", "condor_master"), []byte(script), 0o755))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	p.config.Release, p.tools.Release = slow, slow
	if err := p.Start(soon(t)); err != nil {
		t.Error(err)
	}
}

func TestStartExplainsFailure(t *testing.T) {
	t.Parallel()
	first := startPool(t)
	second := newPool(t)
	second.config.Address = first.config.Address
	err := second.Start(soon(t))
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Start() on a port that is taken: %v, want the reason", err)
	}
	noDaemons(t, second)
}

func TestNewPoolRefuses(t *testing.T) {
	t.Parallel()
	good := PoolConfig{Dir: filepath.Join(folder(t), "pool"), Release: release, Address: freeAddress(t), RunAs: programs.Unprivileged()}
	closed := filepath.Join(folder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(c *PoolConfig)
		want   string
		root   bool // applies to root only
	}{
		"relative":    {func(c *PoolConfig) { c.Dir = "pool" }, "the path must be absolute", false},
		"macro":       {func(c *PoolConfig) { c.Dir += "$(x)" }, "configuration cannot name", false},
		"no port":     {func(c *PoolConfig) { c.Address = netipAddr("127.0.0.1:0") }, "address must have a port", false},
		"any address": {func(c *PoolConfig) { c.Address = netipAddr("0.0.0.0:9618") }, "address must have a port", false},
		"no user":     {func(c *PoolConfig) { c.RunAs = "no-such-user" }, "run_as", false},
		"root":        {func(c *PoolConfig) { c.RunAs = "root" }, "run_as", false},
		"nobody said": {func(c *PoolConfig) { c.RunAs = "" }, "run_as", true},
		"closed":      {func(c *PoolConfig) { c.Dir = filepath.Join(closed, "pool") }, "cannot be entered by nobody", true},
	}
	for name, test := range tests {
		c := good
		test.change(&c)
		_, err := NewPool(c)
		if test.root && os.Getuid() != 0 {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: NewPool() = %v, want an error with %q", name, err, test.want)
		}
	}
}

func TestEnvUsesThePool(t *testing.T) {
	t.Parallel()
	p := common(t)
	cmd := p.Tools().command(soon(t), "condor_config_val", "SCHEDD_INTERVAL")
	cmd.Env = p.tools.env()
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "2" {
		t.Errorf("condor_config_val SCHEDD_INTERVAL = %q, %v, want 2", out, err)
	}
}
