package pilot

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]int{
		"12 (sh) S 7 12 12 0":           7,
		"12 (a) b) ((c) R 8 1":          8,
		"12 (sh) Z 7 12 12 0":           0,
		"12 (sh)":                       0,
		"":                              0,
		"12 (sh) S seven 12":            0,
		"12 (name\nwith a line) S 9 1 ": 9,
	} {
		if got, ok := parseStat(stat); got != want || ok != (want != 0) {
			t.Errorf("parseStat(%q) = %d, %v, want %d", stat, got, ok, want)
		}
	}
	if parent, ok := parentOf(os.Getpid()); !ok || parent != os.Getppid() {
		t.Errorf("parentOf(self) = %d, %v, want %d", parent, ok, os.Getppid())
	}
}

func TestLeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := takeLease(dir, newHolder()); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, errLeased):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d took the lease, want 1", won.Load())
	}
	if err := takeLease(dir+"/none", newHolder()); err == nil || errors.Is(err, errLeased) {
		t.Errorf("takeLease in no directory = %v, want another error", err)
	}
}
