package atomicfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	opened := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := opened(), opened()
	if err := Lock(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := Lock(over, second); err == nil || err.Error() != "enough" {
		t.Errorf("the lock is held, and the wait ends with %v, want the context's cause", err)
	}
	got := make(chan error)
	go func() { got <- Lock(t.Context(), second) }()
	first.Close()
	if err := <-got; err != nil {
		t.Errorf("the holder has closed its file: %v", err)
	}
	second.Close()
	if err := Lock(t.Context(), second); err == nil {
		t.Error("a file that is closed was locked")
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, text := range []string{"a long text", "short"} {
		if err := Replace(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); string(got) != text {
			t.Errorf("the file has %q, want %q (%v)", got, text, err)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("more than the file is left: %v, %v", entries, err)
	}
	if err := Replace(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("a file was written in a folder that is not there")
	}
}
