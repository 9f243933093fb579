package baseline

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// The output of perf stat is from machines with counters, without counters, and with two types of cores.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want counts
	}{
		"counted": {"# started on Fri Nov 27 22:00:00 2026\n\n2000000,,instructions:u,1000000,100.00,0.80,insn per cycle\n" +
			"2500000,,cycles:u,1000000,100.00,,\n1.00,msec,task-clock:u,1000000,100.00,0.9,CPUs utilized\n",
			counts{counted: true, instructions: 2e6, cycles: 2.5e6, busy: time.Millisecond}},
		"no counters": {"<not supported>,,instructions,0,100.00,,\n<not counted>,,cycles,0,0.00,,\n0.52,msec,task-clock,520000,100.00,,\n",
			counts{busy: 520 * time.Microsecond}},
		"two sorts of cores": {"1000,,cpu_core/instructions/u,1,50.00,,\n500,,cpu_atom/instructions/u,1,50.00,,\n" +
			"900,,cpu_core/cycles/u,1,50.00,,\n100,,cpu_atom/cycles/u,1,50.00,,\n", counts{counted: true, instructions: 1500, cycles: 1000}},
		"nothing":           {"", counts{}},
		"what is no number": {"NaN,,instructions,1\n-1,,cycles,1\n+Inf,,cycles,1\na,b\n", counts{}},
	} {
		var got counts
		if got.read(c.text); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("2000000,,instructions:u,1000000,100.00,0.80,insn per cycle\n2500000,,cycles:u,1\n1.00,msec,task-clock:u,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		var c counts
		c.read(text)
		if !(c.instructions >= 0) || !(c.cycles >= 0) || c.counted != (c.instructions > 0 && c.cycles > 0) {
			t.Errorf("%+v of %q", c, text)
		}
	})
}

// If one run was not counted, the summary contains only times.
func TestSummary(t *testing.T) {
	t.Parallel()
	runs := []counts{
		{wall: time.Second, counted: true, instructions: 2e9, cycles: 1e9, busy: 500 * time.Millisecond},
		{wall: 3 * time.Second, counted: true, instructions: 4e9, cycles: 2e9, busy: time.Second},
	}
	b := summary(runs)
	if b.Source != Perf || b.Runs != 2 || b.Wall.Mean != 2 || math.Abs(b.Wall.SD-math.Sqrt2) > 1e-9 ||
		b.Instructions.Mean != 3e9 || b.PerCycle != 2 || b.ClockHz != 2e9 {
		t.Errorf("%+v", b)
	}
	runs[1].counted = false
	if b = summary(runs); b.Source != WallClock || b.Instructions != nil || b.PerCycle != 0 || b.Wall.Mean != 2 {
		t.Errorf("with one that was not counted: %+v", b)
	}
}

// A real command is measured with the tools of this machine.
func TestMeasure(t *testing.T) {
	t.Parallel()
	b, err := Measure(t.Context(), []string{"true"}, 3)
	if err != nil || b.Runs != 3 || b.Wall.Mean <= 0 || b.Wall.SD < 0 ||
		(b.Source == Perf) != (b.Instructions != nil) || (b.Source == WallClock) != (b.Why != "") {
		t.Errorf("%+v, %v", b, err)
	}
	text, err := json.Marshal(b)
	if err != nil || !strings.Contains(string(text), `"instructions":`) {
		t.Errorf("%s, %v", text, err)
	}
	for want, argv := range map[corral.Kind][]string{corral.Failed: {"false"}, corral.NotFound: {"no-such-program"}, corral.Invalid: nil} {
		if _, err := Measure(t.Context(), argv, 1); corral.KindOf(err) != want {
			t.Errorf("%v: %v, want %s", argv, err, want)
		}
	}
}

// Measure does not wait for processes that a command leaves behind, reports the end of even a long output, and ends an
// interrupted command with all its processes.
func TestTime(t *testing.T) {
	t.Parallel()
	var c counts
	behind := filepath.Join(t.TempDir(), "behind")
	if _, err := c.time(exec.CommandContext(t.Context(), "sh", "-c", "sleep 600 & echo $! >"+behind)); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(behind); err != nil {
		t.Error(err)
	} else if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("%q did not stay: %v", text, err)
	}
	said, err := c.time(exec.CommandContext(t.Context(), "sh", "-c", "yes | head -c 1000000 >&2; echo why >&2; exit 3"))
	if err == nil || len(said) > 1024 || !strings.HasSuffix(said, "y\nwhy\n") {
		t.Errorf("%d bytes, %.100q, %v", len(said), said, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := filepath.Join(t.TempDir(), "left")
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(left); err == nil && len(text) > 0 {
				cancel()
			}
		}
	}()
	if _, err = c.time(exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo $! >"+left+"; wait")); err == nil {
		t.Error("an interrupted command has ended well")
	}
	text, err := os.ReadFile(left)
	if err != nil {
		t.Fatal(err)
	}
	stat := filepath.Join("/proc", strings.TrimSpace(string(text)), "stat")
	for { // until it has ended, or is a zombie
		if s, err := os.ReadFile(stat); err != nil || strings.Contains(string(s), ") Z ") {
			return
		}
		runtime.Gosched()
	}
}
