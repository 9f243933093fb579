package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestCopy: a copy has the content, the age and the permissions of the original and is writable, and writes to the copy
// do not change the original.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1e9, 0)
	must(os.MkdirAll(at("tree/below"), 0o700))
	must(os.WriteFile(at("tree/below/file"), []byte("one"), 0o500))
	must(os.Chtimes(at("tree/below/file"), old, old))
	must(os.Symlink("below/file", at("tree/link")))
	must(os.Symlink("tree", at("leads")))
	must(os.Chmod(at("tree/below"), 0o500))
	defer os.Chmod(at("tree/below"), 0o700)
	must(Copy(at("leads"), at("copy")))
	for name, want := range map[string]fs.FileMode{"copy": fs.ModeDir | 0o700, "copy/below": fs.ModeDir | 0o700, "copy/below/file": 0o700} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode() != want || name == "copy/below/file" && !info.ModTime().Equal(old) {
			t.Errorf("%s: %v, %v, want mode %s and the original's age", name, info, err, want)
		}
	}
	if to, err := os.Readlink(at("copy/link")); to != "below/file" || err != nil {
		t.Errorf("link = %q, %v", to, err)
	}
	must(os.WriteFile(at("copy/below/file"), []byte("two"), 0))
	if b, err := os.ReadFile(at("tree/below/file")); string(b) != "one" {
		t.Errorf("the original is %q, %v", b, err)
	}
	must(Copy(at("tree/link"), at("alone")))
	if b, err := os.ReadFile(at("alone")); string(b) != "one" {
		t.Errorf("the copy of what a link leads to is %q, %v", b, err)
	}
}

// A copy is refused if the target exists, or if the source is neither a file nor a directory: opening a named pipe
// could block forever.
func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{pipe: "new", file: "file", filepath.Join(dir, "none"): "other"} {
		if err := Copy(from, filepath.Join(dir, to)); err == nil {
			t.Errorf("Copy(%s, %s) is done", from, to)
		}
	}
}
