package proc

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stat is a line of /proc/PID/stat that ends with the resident set.
func stat(head string, pages string) string {
	return "12 " + head + strings.Repeat(" 0", residentField-3) + " " + pages + " 18446744073709551615 1"
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	page := int64(os.Getpagesize())
	for text, want := range map[string]Process{
		stat("(sh) S 7 12", "5"):               {Parent: 7, Group: 12, ResidentBytes: 5 * page},
		stat("(a) b) ((c) R 8 1", "6"):         {Parent: 8, Group: 1, ResidentBytes: 6 * page},
		stat("(name\nwith a line) S 9 1", "7"): {Parent: 9, Group: 1, ResidentBytes: 7 * page},
		stat("(sh) Z 7 12", "0"):               {},
		stat("(sh) S seven 12", "0"):           {},
		stat("(sh) S 7 twelve", "0"):           {},
		stat("(sh) S 7 12", "-1"):              {},
		"12 (sh) S 7 12 12":                    {},
		"12 (sh)":                              {},
		"":                                     {},
	} {
		if got, ok := parseStat([]byte(text)); got != want || ok != (want != Process{}) {
			t.Errorf("parseStat(%q) = %+v, %v, want %+v", text, got, ok, want)
		}
	}
	if got, ok := Look(os.Getpid()); !ok || got.Parent != os.Getppid() || got.Group != syscall.Getpgrp() || got.ResidentBytes < 1<<20 {
		t.Errorf("Look(self) = %+v, %v, want parent %d, group %d", got, ok, os.Getppid(), syscall.Getpgrp())
	}
	if !slices.ContainsFunc(All(), func(p Process) bool { return p.ID == os.Getpid() }) {
		t.Error("this process is not among all")
	}
}

func FuzzStat(f *testing.F) {
	f.Add(stat("(sh) S 0 1", "3"))
	f.Add("1 () ) Z")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parseStat([]byte(text))
		if ok && (p.Parent == 0 && !strings.Contains(text, "0") || min(int64(p.Parent), int64(p.Group), p.ResidentBytes) < 0) {
			t.Errorf("parseStat(%q) = %+v, which is not in it", text, p)
		}
		if at, ok := parseBegan([]byte(text)); ok && at < 0 {
			t.Errorf("parseBegan(%q) = %s", text, at)
		}
		if size, _ := parseRollup([]byte(text)); size < 0 {
			t.Errorf("parseRollup(%q) = %d", text, size)
		}
	})
}

func TestBegan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"12 (a) b) S 7 12" + strings.Repeat(" 0", 16) + " 250 0 0": 2500 * time.Millisecond,
		"12 (sh) S 7 12" + strings.Repeat(" 0", 16) + " -1 0 0":    -1,
		"12 (sh) S 7 12" + strings.Repeat(" 0", 16) + " x 0 0":     -1,
		"12 (sh) S 7 12": -1,
		"":               -1,
	} {
		if got, ok := parseBegan([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("parseBegan(%q) = %s, %v, want %s", text, got, ok, want)
		}
	}
	parent, ok := Began(os.Getppid())
	self, okSelf := Began(os.Getpid())
	if !ok || !okSelf || parent > self {
		t.Errorf("this process began at %s, %v, and its parent at %s, %v", self, okSelf, parent, ok)
	}
}

// File memory and swapped memory do not count; without both of the other values the result is unknown.
func TestParseRollup(t *testing.T) {
	t.Parallel()
	const head = "564e06991000-7ffe0da27000 ---p 00000000 00:00 0                          [rollup]\nRss: 90 kB\nPss: 80 kB\n"
	for text, want := range map[string]int64{
		head + "Pss_Anon:   112 kB\nPss_File: 115 kB\nPss_Shmem:   8 kB\nSwapPss: 5 kB\n": 120 << 10,
		head + "Pss_Anon:   112 kB\n":                       -1,
		head + "Pss_Anon:   much kB\nPss_Shmem:   8 kB\n":   -1,
		head + "Pss_Anon:   -112 kB\nPss_Shmem:   8 kB\n\n": -1,
		"": -1,
	} {
		got, ok := parseRollup([]byte(text))
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("parseRollup(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	if got, ok := Held(os.Getpid()); !ok || got < 1<<20 {
		t.Errorf("Held(self) = %d, %v", got, ok)
	}
}

// In task 31, process 33 has lost its parent and is still in the task's group, and process 35 has a group of its own.
// Process 34 has left the group and also lost its parent.
func TestTree(t *testing.T) {
	t.Parallel()
	all := []Process{{1, 0, 1, 1}, {30, 1, 30, 1}, {35, 32, 35, 1}, {33, 1, 31, 1}, {32, 31, 31, 1}, {31, 30, 31, 1}, {34, 1, 34, 1},
		{36, 33, 36, 1}, {40, 30, 40, 1}}
	var got []int
	for _, p := range Tree(all, 31) {
		got = append(got, p.ID)
	}
	slices.Sort(got)
	if want := []int{31, 32, 33, 35, 36}; !slices.Equal(got, want) {
		t.Errorf("Tree = %v, want %v", got, want)
	}
}

// A process that has ended but was not reaped is not listed.
func TestZombie(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := Look(cmd.Process.Pid); !ok {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkAll(b *testing.B) {
	n := 0
	for b.Loop() {
		n = len(All())
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/process")
}
