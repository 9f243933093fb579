package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// For each token the bare loop makes the files that an attempt of a task leaves.
func TestLoop(t *testing.T) {
	t.Parallel()
	take, give, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer take.Close()
	const n = 5
	if _, err := give.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	give.Close()
	dir := filepath.Join(t.TempDir(), "loop")
	var out bytes.Buffer
	if err := loop(dir, take, &out); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for name, size := range map[string]int64{"stdout": 0, "stderr": 0, "record.json": recordSize} {
			info, err := os.Stat(fmt.Sprintf("%s/%d/%s", dir, i, name))
			if err != nil || info.Size() != size {
				t.Errorf("task %d: %v (%v), want %s of %d bytes", i, info, err, name, size)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != n {
		t.Errorf("%d directories (%v), want %d", len(entries), err, n)
	}
	var self, children int64
	if got, err := fmt.Sscan(out.String(), &self, &children); got != 2 || self <= 0 || children <= 0 {
		t.Errorf("the loop said %q (%v), want its processor time and the tasks'", &out, err)
	}
}

func TestLoopSaysWhyItFails(t *testing.T) {
	t.Parallel()
	if err := loop(filepath.Join(t.TempDir(), "a", "b"), os.Stdin, new(bytes.Buffer)); err == nil {
		t.Error("a loop without its parent directory went well")
	}
	if err := bareTask("/proc/none", 0, nil); err == nil {
		t.Error("a task whose directory cannot be made went well")
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := limit(t.Context(), dir, 40, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.tasks != 40 || s.rate() <= 0 || s.cost[partRunner] <= 0 || s.cost[partTasks] <= 0 {
		t.Errorf("sample %+v", s)
	}
	records, err := filepath.Glob(dir + "/limit-*/[01]/*/record.json")
	if err != nil || len(records) != 40 {
		t.Errorf("%d records (%v), want 40", len(records), err)
	}
}
