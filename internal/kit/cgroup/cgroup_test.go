package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHierarchies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, memberships, mounts string
		want                      []hierarchy
	}{
		{"version 1, a hierarchy each", "4:memory:/job/7\n2:cpu,cpuacct:/\n1:name=systemd:/x\n",
			"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory\n",
			[]hierarchy{{"/sys/fs/cgroup/memory/job/7", 1, true, false}, {"/sys/fs/cgroup/cpu,cpuacct", 1, false, true}}},
		{"version 2", "0::/user.slice/a.scope\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			[]hierarchy{{"/sys/fs/cgroup/user.slice/a.scope", 2, true, true}}},
		{"both, version 1 first", "0::/\n4:memory:/\n", "1 2 0:3 / /v2 rw - cgroup2 none rw\n1 2 0:3 / /v1 rw - cgroup none rw,memory\n",
			[]hierarchy{{"/v1", 1, true, false}, {"/v2", 2, true, true}}},
		{"a part is mounted", "0::/docker/abc\n", "1 2 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			[]hierarchy{{"/sys/fs/cgroup", 2, true, true}}},
		{"another part is mounted", "0::/docker/abcd\n", "1 2 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		{"above what is seen", "0::/../x\n", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		{"nothing is mounted", "0::/\n4:memory:/\n", "", nil},
		{"junk", "0\n::\n", "1 2 - cgroup2\n", nil},
	} {
		got := hierarchies(c.memberships, c.mounts)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func FuzzHierarchies(f *testing.F) {
	f.Add("0::/a\n4:memory:/b\n", "1 2 0:3 / /v2 rw - cgroup2 none rw\n1 2 0:3 / /v1 rw - cgroup none rw,memory\n")
	f.Fuzz(func(t *testing.T, memberships, mounts string) {
		for _, h := range hierarchies(memberships, mounts) {
			if h.dir == "" || strings.Contains(h.dir, "/../") {
				t.Errorf("%+v", h)
			}
		}
		if n := number(mounts); n < 0 {
			t.Errorf("%q is %d", mounts, n)
		}
		if n := field(mounts, "file"); n < 0 {
			t.Errorf("%q has file %d", mounts, n)
		}
	})
}

// tree makes a directory tree from a map of names to contents.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestUsage: a group's files report the usage in both versions; files in memory do not count.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		at     place
		files  map[string]string
		cpu    time.Duration
		memory int64
	}{
		{"version 1", place{version: 1}, map[string]string{"cpuacct.usage": "1500000000\n", "memory.stat": "cache 5\ntotal_cache 4096\n",
			"memory.max_usage_in_bytes": "104096\n"}, 1500 * time.Millisecond, 100000},
		{"version 2", place{version: 2}, map[string]string{"cpu.stat": "usage_usec 1500000\nuser_usec 1\n",
			"memory.peak": "104096\n", "memory.stat": "anon 0\nfile 4096\nfile_mapped 7\n"}, 1500 * time.Millisecond, 100000},
		{"no peak in an old kernel", place{version: 2}, map[string]string{"memory.stat": "file 4096\n"}, 0, 0},
		{"nothing", place{version: 1}, nil, 0, 0},
		{"junk", place{version: 1}, map[string]string{"cpuacct.usage": "-3", "memory.max_usage_in_bytes": "much",
			"memory.stat": "total_cache\n"}, 0, 0},
	} {
		dir := tree(t, c.files)
		if got := c.at.cpuTime(dir); got != c.cpu {
			t.Errorf("%s: cpu %s, want %s", c.name, got, c.cpu)
		}
		if got := c.at.peak(dir); got != c.memory {
			t.Errorf("%s: memory %d, want %d", c.name, got, c.memory)
		}
	}
}

// TestOpen: groups are made where possible, and version 2 measures memory only where the controller is enabled.
func TestOpen(t *testing.T) {
	t.Parallel()
	mounts := "1 2 0:3 / /cg rw - cgroup2 none rw\n"
	for _, c := range []struct {
		name        string
		files       map[string]string
		memory, cpu bool
	}{
		{"no groups", nil, false, false},
		{"a group that is not there", map[string]string{"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": mounts}, false, false},
		{"without the memory controller", map[string]string{"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": mounts,
			"cg/x/cgroup.subtree_control": "cpu pids\n"}, false, true},
		{"with it", map[string]string{"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": mounts,
			"cg/x/cgroup.subtree_control": "cpu memory\n"}, true, true},
	} {
		p := Open(tree(t, c.files))
		if (p != nil) != (c.memory || c.cpu) || p != nil && ((p.mem.dir != "") != c.memory || (p.cpu.dir != "") != c.cpu) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// TestOpenSweeps: groups of processes that have ended are removed, and groups of live processes stay.
func TestOpenSweeps(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	left, kept, others := fmt.Sprintf("corral-%d-3", gone.Process.Pid), fmt.Sprintf("corral-%d-1", os.Getppid()), "corral-x"
	root := tree(t, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "1 2 0:3 / /cg rw - cgroup2 none rw\n"})
	for _, name := range []string{left, kept, others} {
		if err := os.MkdirAll(filepath.Join(root, "cg", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if Open(root) == nil {
		t.Fatal("no group can be made")
	}
	entries, err := os.ReadDir(filepath.Join(root, "cg"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v, want %s and %s", entries, err, kept, others)
	}
}

// TestTake: a process enters the group before its children, and each child before its own children. The group is
// removed with the task, or later if a process is left in it.
func TestTake(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "1 2 0:3 / /cg rw - cgroup2 none rw\n",
		"cg/cgroup.subtree_control": "memory\n", "proc/7/task/7/children": "8", "proc/7/task/70/children": "9 ",
		"proc/8/task/8/children": "10 11"})
	p := Open(root)
	g, err := p.Take(7, 0)
	if err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join(g.cpu, "cgroup.procs"))
	if err != nil || string(procs) != "7\n8\n10\n11\n9\n" || g.mem != g.cpu {
		t.Errorf("the group got %q, %v", procs, err)
	}
	g.Remove() // a file in it prevents removal, as processes would
	if _, err := os.Stat(g.cpu); err != nil {
		t.Error("a group that is not empty is gone")
	}
	if err := os.Remove(filepath.Join(g.cpu, "cgroup.procs")); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := os.Stat(g.cpu); err == nil {
		t.Errorf("%s is left", g.cpu)
	}
}

// TestLimit: in both versions the limit of a group, without swap, is set before a process enters the group. A kill by
// the kernel counts only if the group had reached its limit.
func TestLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		at      place
		limits  map[string]string
		files   map[string]string
		refused bool
	}{
		{"version 1", place{version: 1}, map[string]string{"memory.limit_in_bytes": "4096", "memory.memsw.limit_in_bytes": "4096"},
			map[string]string{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "memory.limit_in_bytes": "4096\n", "memory.max_usage_in_bytes": "4000\n"}, true},
		{"version 1, the machine is short", place{version: 1}, nil,
			map[string]string{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "memory.limit_in_bytes": "4096\n", "memory.max_usage_in_bytes": "400\n"}, false},
		{"version 1, only full", place{version: 1}, nil,
			map[string]string{"memory.oom_control": "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n", "memory.limit_in_bytes": "4096\n", "memory.max_usage_in_bytes": "4096\n"}, false},
		{"version 2", place{version: 2}, map[string]string{"memory.max": "4096", "memory.swap.max": "0", "memory.oom.group": "1"},
			map[string]string{"memory.events": "low 0\nhigh 0\nmax 40\noom 1\noom_kill 3\noom_group_kill 1\n"}, true},
		{"version 2, the machine is short", place{version: 2}, nil,
			map[string]string{"memory.events": "max 0\noom 0\noom_kill 3\n"}, false},
		{"nothing is told", place{version: 2}, nil, nil, false},
	} {
		dir := tree(t, c.files)
		if got := c.at.refused(dir); got != c.refused {
			t.Errorf("%s: refused %v", c.name, got)
		}
		c.at.limit(dir, 4096)
		for name, want := range c.limits {
			if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
				t.Errorf("%s: %s is %q (%v), want %q", c.name, name, got, err, want)
			}
		}
	}
}
