package executor

import (
	"os"
	"testing"
)

// Tasks side by side do not share a directory, and one that cannot be made costs no task.
func TestScratchLends(t *testing.T) {
	t.Parallel()
	s := scratch{base: t.TempDir()}
	a, b := s.take(), s.take()
	if a == "" || b == "" || a == b {
		t.Errorf("lent %q and %q", a, b)
	}
	s.give(a)
	if again := s.take(); again != a {
		t.Errorf("lent %q, want %q again", again, a)
	}
	if err := os.RemoveAll(s.base); err != nil {
		t.Fatal(err)
	}
	s.give(b)
	if c := s.take(); c != "" {
		t.Errorf("lent %q below a directory that is gone", c)
	}
}
