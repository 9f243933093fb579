package executor

import (
	"os"
	"os/exec"
	"testing"
)

// Concurrent tasks do not share a directory, and no task fails because its directory cannot be made.
func TestScratchLends(t *testing.T) {
	t.Parallel()
	s := scratch{base: t.TempDir()}
	a, b := s.take(), s.take()
	if a.path == "" || b.path == "" || a.path == b.path {
		t.Errorf("lent %q and %q", a.path, b.path)
	}
	s.give(a)
	if again := s.take(); again.path != a.path {
		t.Errorf("lent %q, want %q again", again.path, a.path)
	}
	if err := os.RemoveAll(s.base); err != nil {
		t.Fatal(err)
	}
	s.give(b)
	if c := s.take(); c.path != "" {
		t.Errorf("lent %q below a directory that is gone", c.path)
	}
}

// A directory is empty when it is reused, even if the previous task tries to hide files.
func TestScratchIsEmptyAgain(t *testing.T) {
	t.Parallel()
	s := scratch{base: t.TempDir()}
	for _, script := range []string{":", "touch a", "mkdir -p b/c", "touch a; rm a", "chmod 700 ."} {
		d := s.take()
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = d.path
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		s.give(d)
		again := s.take()
		entries, err := os.ReadDir(again.path)
		if again.path != d.path || err != nil || len(entries) > 0 || !again.untouched() {
			t.Errorf("after %q the directory %s has %v, %v", script, again.path, entries, err)
		}
		s.give(again)
	}
}
