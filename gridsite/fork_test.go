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

// The scripts must mean the same to every POSIX shell: a site's sh may be any of these. The one that
// is called sh is always tried, others where they are installed.
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
			gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return openFork(t, conn) })
		})
	}
}

// walltime is a short one in which a job begins even on a busy machine.
const walltime = 5 * time.Second

func openFork(t testing.TB, conn gridsite.Conn) gridsitetest.Fixture {
	root := filepath.Join(t.TempDir(), "a 'root' of \"$HOME\" é `id`")
	return gridsitetest.Fixture{
		Conn:     conn,
		Open:     func() gridsite.Batch { return gridsite.NewFork(conn, root) },
		Root:     root,
		Walltime: walltime,
		Patience: gridsitetest.Patience,
		Crash:    func(t testing.TB, id string) { kill(t, conn, id) },
	}
}

func dial(t testing.TB) gridsite.Conn {
	conn, err := gridsite.Dial(t.Context(), "local:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// siteConn is this machine with other commands in the front of its PATH.
type siteConn struct {
	gridsite.Conn
	bin string
}

func (c siteConn) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append([]string{"env", "PATH=" + c.bin + ":" + os.Getenv("PATH")}, cmd.Argv...)
	return c.Conn.Run(ctx, cmd)
}

func withShell(t testing.TB, shell string) gridsite.Conn {
	bin := t.TempDir()
	if err := os.Symlink(shell, filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	return siteConn{dial(t), bin}
}

// withCommand is a site on which one command is replaced by a script.
func withCommand(t testing.TB, name, script string) gridsite.Conn {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return siteConn{dial(t), bin}
}

// kill ends the leader of a fork job, whose pid its id begins with.
func kill(t testing.TB, conn gridsite.Conn, id string) {
	t.Helper()
	pid, _, _ := strings.Cut(id, ".")
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "kill -KILL $0", pid}})
	if err != nil || res.Exit != 0 {
		t.Fatalf("kill %s: %v %s", id, err, res.Stderr)
	}
}

// await polls until the job has ended, and returns its status.
func await(t testing.TB, batch gridsite.Batch, tag string) (job gridsite.JobStatus) {
	t.Helper()
	gridsitetest.Until(t, tag+" to end", func() bool {
		jobs, err := batch.Poll(t.Context(), []string{tag})
		if err != nil {
			t.Fatal(err)
		}
		job = jobs[tag]
		return job.Phase == gridsite.Ended
	})
	return job
}
