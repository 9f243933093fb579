package fork_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
)

// withShell is this machine with another program as sh.
func withShell(t testing.TB, shell string) gridsitetest.InPath {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(shell, filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	return gridsitetest.InPath{Conn: local.Conn{}, Bin: bin}
}

// The scripts must work with every POSIX shell, because a site's sh may be any of these. The program sh is always
// tested, and the other shells if they are installed.
func TestForkConformance(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, name := range []string{"sh", "dash", "bash", "busybox"} {
		path, err := exec.LookPath(name)
		if err != nil && name != "sh" {
			continue
		}
		shell, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		if tried[shell] {
			continue
		}
		tried[shell] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := withShell(t, shell)
			gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return gridsitetest.OpenFork(t, conn) })
		})
	}
}
