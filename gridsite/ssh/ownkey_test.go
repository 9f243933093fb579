package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// The key of a home is generated once, even by concurrent callers, and only its user can read it.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "owners", "ann")
	lines := make([]string, 8)
	var asking sync.WaitGroup
	for i := range lines {
		asking.Go(func() {
			line, err := OwnKey(home, "corral-ann")
			if err != nil {
				t.Error(err)
			}
			lines[i] = line
		})
	}
	asking.Wait()
	for _, line := range lines {
		if line != lines[0] {
			t.Fatalf("several keys: %q", lines)
		}
	}
	_, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(lines[0]))
	if err != nil || comment != "corral-ann" || strings.ContainsAny(lines[0], "\n") {
		t.Errorf("%q: %q, %v", lines[0], comment, err)
	}
	files, err := os.ReadDir(filepath.Join(home, ".ssh"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{".ssh": 0o700, ".ssh/id_ed25519": 0o600} {
		if info, err := os.Stat(filepath.Join(home, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
