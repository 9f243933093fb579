package atomicfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A folder uses as much space as its files; a file with two names counts once.
func TestUseOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(sub, 0o700))
	empty, err := UseOf(t.Context(), dir)
	if err != nil || empty.Files != 2 {
		t.Errorf("UseOf(two folders) = %v, %v", empty, err)
	}
	const size = 1 << 20
	must(os.WriteFile(filepath.Join(sub, "file"), make([]byte, size), 0o600))
	must(os.Symlink("gone", filepath.Join(dir, "link")))
	one, err := UseOf(t.Context(), dir)
	if err != nil || one.Files != 4 || one.Bytes < empty.Bytes+size {
		t.Errorf("UseOf(a file of 1 MiB and a link) = %v, %v", one, err)
	}
	must(os.Link(filepath.Join(sub, "file"), filepath.Join(dir, "again")))
	if two, err := UseOf(t.Context(), dir); err != nil || two.Files != one.Files || two.Bytes >= one.Bytes+size {
		t.Errorf("UseOf(the same with a second name) = %v, %v, before %v", two, err, one)
	}
	if none, err := UseOf(t.Context(), filepath.Join(dir, "nowhere")); err != nil || none != (Use{}) {
		t.Errorf("UseOf(nothing) = %v, %v", none, err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := UseOf(over, dir); !errors.Is(err, enough) {
		t.Errorf("UseOf after the end of its context = %v", err)
	}
}
