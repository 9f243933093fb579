package nodecheck

import (
	"math"
	"os"
	"testing"
	"testing/fstest"
)

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
			got, err := MemoryMiB(c.sys)
			if (err != nil) != (c.want < 0) || err == nil && got != c.want {
				t.Errorf("MemoryMiB = %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestThisMachineHasMemory(t *testing.T) {
	t.Parallel()
	if n, err := MemoryMiB(os.DirFS("/")); err != nil || n < 16 {
		t.Errorf("MemoryMiB = %d, %v", n, err)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("MemTotal: 8388608 kB\n", "0::/a/b\n", "1073741824\n")
	f.Add("MemTotal:", "0::/../..", "-1")
	f.Add("MemTotal: -1 kB", "0::/a", "-1")
	f.Fuzz(func(t *testing.T, meminfo, group, limit string) {
		sys := fstest.MapFS{
			"proc/meminfo":               {Data: []byte(meminfo)},
			"proc/self/cgroup":           {Data: []byte(group)},
			"sys/fs/cgroup/a/memory.max": {Data: []byte(limit)},
		}
		if n, err := MemoryMiB(sys); err == nil && (n < 0 || n > math.MaxInt>>10) {
			t.Errorf("MemoryMiB(%q, %q, %q) = %d", meminfo, group, limit, n)
		}
	})
}
