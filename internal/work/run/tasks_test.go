package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file with which a task replaces its log must not block readers.
func TestLogIsARegularFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		os.Symlink("/etc/passwd", filepath.Join(dir, "away")), os.WriteFile(filepath.Join(dir, "log"), []byte("said"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "folder", "none"} {
		if _, err := (place{dir, name}).open(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("opening %s: %v, want %v", name, err, fs.ErrNotExist)
		}
	}
	if _, err := (place{dir, "away"}).open(); err == nil {
		t.Error("a link that leads away was followed")
	}
	f, err := place{dir, "log"}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "said" {
		t.Errorf("the log is %q, %v", text, err)
	}
}
