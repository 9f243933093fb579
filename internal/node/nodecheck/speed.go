package nodecheck

import (
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	speedTime  = 50 * time.Millisecond // for the whole measurement
	speedSteps = 100_000               // in one round
)

// Speed measures one core, in million steps of a fixed loop per second. A step is a 64-bit multiplication and shift, a
// dependent load from a table of 32 KiB, and a multiplication and an addition of floats: typical work of tasks between
// cache misses. The result is that of the fastest round within speedTime, so that other processes on the node have
// little influence.
func Speed() float64 {
	var table [4096]uint64
	for i := range table {
		table[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	best, x, f := time.Duration(1<<62), uint64(1), 1.0
	for end := time.Now().Add(speedTime); time.Now().Before(end); {
		from := time.Now()
		for range speedSteps {
			x = x*6364136223846793005 + table[x>>52]
			x ^= x >> 29
			f = f*0.999999 + float64(x&1)
		}
		best = min(best, time.Since(from))
	}
	if f < 0 {
		return 0 // unreachable, but unknown to the compiler, so it cannot remove the loop
	}
	return float64(speedSteps) / float64(best.Nanoseconds()) * 1e3
}

// Libc names the C library of this machine in the notation of a site's platform: glibcX.Y, musl or unknown. Programs
// are selected by this name, so it refers to the machine's library, not to a library of this program, which is linked
// without one.
func Libc() string {
	if out, err := exec.Command("getconf", "GNU_LIBC_VERSION").Output(); err == nil {
		return "glibc" + strings.TrimPrefix(strings.TrimSpace(string(out)), "glibc ")
	}
	if found, _ := filepath.Glob("/lib/ld-musl-*.so.1"); len(found) > 0 {
		return "musl"
	}
	return "unknown"
}
