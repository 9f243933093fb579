package pilot

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/corral-pilot/corral/internal/order"
)

func TestCheckNode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		scratch string
		pilot   order.Pilot
		want    string // "": fit
	}{
		{"fit", t.TempDir(), order.Pilot{Hosts: 2, MemoryMiB: 1}, ""},
		{"no scratch", filepath.Join(t.TempDir(), "none"), order.Pilot{Hosts: 1}, "scratch: "},
		{"scratch is a file", file, order.Pilot{Hosts: 1}, "scratch: "},
		{"memory", t.TempDir(), order.Pilot{Hosts: 1 << 10, MemoryMiB: 1 << 20}, "memory: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkNode(c.scratch, c.pilot)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("checkNode = %v, want %q", err, c.want)
			}
		})
	}
}

func TestCheckClock(t *testing.T) {
	t.Parallel()
	for offset, ok := range map[time.Duration]bool{0: true, 59 * time.Second: true, -59 * time.Second: true,
		61 * time.Second: false, -time.Hour: false} {
		if err := checkClock(offset); (err == nil) != ok {
			t.Errorf("checkClock(%s) = %v, want ok %v", offset, err, ok)
		}
	}
}

func TestCheckAtLeast(t *testing.T) {
	t.Parallel()
	if err := checkAtLeast(100, 100); err != nil {
		t.Errorf("checkAtLeast(100, 100) = %v", err)
	}
	if err := checkAtLeast(99, 100); err == nil {
		t.Error("checkAtLeast(99, 100) = nil")
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	machine := file("MemFree: 1 kB\nMemTotal:        8388608 kB\n")
	for _, c := range []struct {
		name string
		sys  fstest.MapFS
		want int // MiB; -1: an error
	}{
		{"machine", fstest.MapFS{"proc/meminfo": machine}, 8192},
		{"no limit", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n")}, 8192},
		{"old groups", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("4:memory:/a\n")}, 8192},
		{"own limit", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("1073741824\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 1024},
		{"limit above", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("536870912\n")}, 512},
		{"junk", fstest.MapFS{"proc/meminfo": file("MemTotal: much kB\n")}, -1},
		{"none", fstest.MapFS{}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := memoryMiB(c.sys)
			if (err != nil) != (c.want < 0) || err == nil && got != c.want {
				t.Errorf("memoryMiB = %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

func FuzzNodeFiles(f *testing.F) {
	f.Add("MemTotal: 8388608 kB\n", "0::/a/b\n", "1073741824\n", "1 (sh) S 0 1 1")
	f.Add("MemTotal:", "0::/../..", "-1", "1 () ) Z")
	f.Fuzz(func(t *testing.T, meminfo, group, limit, stat string) {
		if n, err := memTotal([]byte(meminfo)); err == nil && n > math.MaxInt>>10 {
			t.Errorf("memTotal(%q) = %d", meminfo, n)
		}
		groupLimit(fstest.MapFS{"sys/fs/cgroup/a/memory.max": {Data: []byte(limit)}}, []byte(group))
		parseStat(stat)
	})
}
