package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What Corral does not follow may be written as ssh likes it.
func TestSSHConfigOfOthers(t *testing.T) {
	t.Parallel()
	read := func(text string) (*sshConfig, error) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readSSHConfig(file, "/home/ann")
	}
	c, err := read("Host hpc\n LocalCommand echo don't\n User ann\nMatch exec \"test it's\n User bob\n IdentityFile it's\n")
	if err != nil || c.first("hpc", "user") != "ann" {
		t.Errorf("read %+v, %v", c, err)
	}
	for _, text := range []string{"User ann's\n", "Host \"hpc\n"} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), ":1") {
			t.Errorf("%q: %v, want an error with its line", text, err)
		}
	}
}
