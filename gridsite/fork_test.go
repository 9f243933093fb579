package gridsite_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

func dial(t testing.TB) gridsite.Conn {
	conn, err := gridsite.Dial(t.Context(), "local:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func openFork(t testing.TB) gridsitetest.Fixture {
	conn := dial(t)
	root := filepath.Join(t.TempDir(), "a 'root' of \"$HOME\" é `id`")
	return gridsitetest.Fixture{
		Conn:     conn,
		Open:     func() gridsite.Batch { return gridsite.NewFork(conn, root) },
		Root:     root,
		Walltime: time.Second,
		Patience: 30 * time.Second,
		Crash:    func(t testing.TB, id string) { kill(t, conn, id) },
	}
}

// kill ends the leader of a fork job, whose pid its id begins with.
func kill(t testing.TB, conn gridsite.Conn, id string) {
	pid, _, _ := strings.Cut(id, ".")
	res, err := conn.Run(context.WithoutCancel(t.Context()), gridsite.Command{Argv: []string{"sh", "-c", `kill -KILL "$1"`, "sh", pid}})
	if err != nil || res.Exit != 0 {
		t.Fatalf("kill %s: %v %s", id, err, res.Stderr)
	}
}

func TestForkConformance(t *testing.T) { gridsitetest.Test(t, openFork) }

// The scripts must mean the same to every POSIX shell; a site's sh may be any of these.
func TestForkConformanceOfShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // only what is here can be tried; the plain sh is always
		}
		t.Run(shell, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(path, filepath.Join(dir, "sh")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			gridsitetest.Test(t, openFork)
		})
	}
}
