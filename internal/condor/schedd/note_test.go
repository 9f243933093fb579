package schedd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run keeps its name in the schedd across restarts, even if its directory moves.
func TestNoteKeepsTheName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue", "7", "run.json")
	first := note{path: path}
	if first.recall() || first.trouble != nil {
		t.Errorf("recalled from nothing: %+v", first)
	}
	if first.keep("/d") || first.trouble != nil || first.ID == "" {
		t.Fatalf("the first note is %+v", first)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, want mode 0600", info, err)
	}
	if first.keep("/d") {
		t.Error("a note that is kept was recalled")
	}
	again := note{path: path}
	if !again.keep("/elsewhere") || again.ID != first.ID || again.trouble != nil {
		t.Errorf("after a restart the note is %+v, want the name %s", again, first.ID)
	}
	third := note{path: path}
	if !third.recall() || third.ID != first.ID || third.Dir != "/elsewhere" {
		t.Errorf("recalled %+v, want %s in /elsewhere", third, first.ID)
	}
}

// A note that cannot be read may name jobs that would run twice, so it is kept, and nothing is submitted.
func TestNoteThatCannotBeReadStays(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"half": `{"id": "ABC`, "without a name": `{"dir": "/d"}`} {
		path := filepath.Join(t.TempDir(), "run.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := note{path: path}
		if n.keep("/d") || n.trouble == nil || !strings.Contains(n.trouble.Error(), path) {
			t.Errorf("%s: %+v, want trouble that names the file", name, n)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Errorf("%s: the note was replaced by %q (%v)", name, got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if n.keep("/d") || n.trouble != nil || n.ID == "" {
			t.Errorf("%s: once it is gone the note is %+v", name, n)
		}
	}
}

func TestNoteOnADiskThatRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := (note{path: filepath.Join(file, "run.json")}); n.keep("/d") || n.trouble == nil {
		t.Errorf("a note below a file: %+v, want trouble", n)
	}
}
