package process

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string][2]int{
		"12 (sh) S 7 12 12 0":           {7, 12},
		"12 (a) b) ((c) R 8 1":          {8, 1},
		"12 (sh) Z 7 12 12 0":           {},
		"12 (sh)":                       {},
		"":                              {},
		"12 (sh) S 7":                   {},
		"12 (name\nwith a line) S 9 1 ": {9, 1},
	} {
		if parent, group, ok := parseStat(stat); [2]int{parent, group} != want || ok != (parent != 0) {
			t.Errorf("parseStat(%q) = %d, %d, %v, want %d", stat, parent, group, ok, want)
		}
	}
	for _, bad := range []string{"12 (sh) S seven 12", "12 (sh) S 7 twelve"} {
		if _, _, ok := parseStat(bad); ok {
			t.Errorf("parseStat(%q) is ok", bad)
		}
	}
	if parent, group, ok := statOf(os.Getpid()); !ok || parent != os.Getppid() || group != syscall.Getpgrp() {
		t.Errorf("statOf(self) = %d, %d, %v, want %d, %d", parent, group, ok, os.Getppid(), syscall.Getpgrp())
	}
}

func FuzzStat(f *testing.F) {
	f.Add("1 (sh) S 0 1 1")
	f.Add("1 () ) Z")
	f.Fuzz(func(t *testing.T, stat string) {
		if parent, _, ok := parseStat(stat); ok && parent == 0 && !strings.Contains(stat, "0") {
			t.Errorf("parseStat(%q) = %d, which is not in it", stat, parent)
		}
	})
}

// Of two workers, 20 and 30, the first has died. Of the second's task 31 one process, 33, has lost its
// parent, and another, 34, has left the task's process group besides.
func TestStrays(t *testing.T) {
	t.Parallel()
	f := family{
		children: map[int][]int{1: {10}, 10: {30, 21, 23, 33, 34}, 21: {22}, 30: {31}, 31: {32}},
		group:    map[int]int{10: 10, 21: 21, 22: 21, 23: 21, 30: 30, 31: 31, 32: 31, 33: 31, 34: 34},
	}
	for _, c := range []struct {
		keep map[int]bool
		want []int
	}{
		{map[int]bool{30: true}, []int{21, 22, 23, 34}},
		{nil, []int{21, 22, 23, 30, 31, 32, 33, 34}},
	} {
		got := f.strays(10, c.keep)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("strays(10, %v) = %v, want %v", c.keep, got, c.want)
		}
	}
}
