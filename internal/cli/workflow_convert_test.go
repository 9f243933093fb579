package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// TestOutputs: the first file of a format has the requested name, and the other files have their own names beside it;
// no file replaces an existing one, and a failed conversion leaves no files behind.
func TestOutputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("old.sub"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &outputs{word: "wfformat", name: path("mine.json")}
	for _, name := range []string{"workflow.json", "inner.json", "a.sub", "../b.sub"} {
		f, err := o.create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, name); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"mine.json": "workflow.json", "inner.json": "inner.json", "a.sub": "a.sub", "b.sub": "../b.sub"} {
		if got, err := os.ReadFile(path(name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if _, err := o.create("old.sub"); corral.KindOf(err) != corral.Invalid || !strings.HasSuffix(err.Error(), "file exists") {
		t.Errorf("create = %v, want that the file exists", err)
	}
	o.undo()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "old.sub" {
		t.Errorf("left are %v, %v, want old.sub", left, err)
	}
	var out bytes.Buffer
	o = &outputs{word: "wfformat", stdout: &out}
	if f, err := o.create("workflow.json"); err != nil || f.Close() != nil {
		t.Error(err)
	}
}
