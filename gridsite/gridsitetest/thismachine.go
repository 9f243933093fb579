package gridsitetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/local"
)

// OpenFork returns a Fixture of batch system fork, reached through any transport to this machine.
func OpenFork(t testing.TB, conn gridsite.Conn) Fixture {
	root := filepath.Join(t.TempDir(), "a 'root' of \"$HOME\" é `id` \\t\\")
	return Fixture{
		Conn:  conn,
		Open:  func() gridsite.Batch { return fork.New(conn, root) },
		Root:  root,
		Crash: func(t testing.TB, id string) { Kill(t, conn, id) },
	}
}

// Walltime is a walltime that is short, but that every system enforces, and within which a job starts even on a busy
// machine.
const Walltime = 5 * time.Second

// Kill kills the leader of a fork job; the job's id begins with the leader's pid.
func Kill(t testing.TB, conn gridsite.Conn, id string) {
	t.Helper()
	pid, _, _ := strings.Cut(id, ".")
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "kill -KILL $0", pid}})
	if err != nil || res.Exit != 0 {
		t.Fatalf("kill %s: %v %s", id, err, res.Stderr)
	}
}

// InPath is a machine with other commands at the front of its PATH, with which a test simulates a site's behaviour.
type InPath struct {
	gridsite.Conn
	Bin string // folder of the commands
}

// Run runs the command with that PATH.
func (p InPath) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append([]string{"env", "PATH=" + p.Bin + ":" + os.Getenv("PATH")}, cmd.Argv...)
	return p.Conn.Run(ctx, cmd)
}

// WithCommand returns this machine with one command replaced by a script.
func WithCommand(t testing.TB, name, script string) InPath {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return InPath{local.Conn{}, bin}
}

// Await polls until the job has ended, and returns its status.
func Await(t testing.TB, batch gridsite.Batch, tag string) (job gridsite.JobStatus) {
	t.Helper()
	Until(t, tag+" to end", func() bool {
		jobs, err := batch.Poll(t.Context(), []string{tag})
		if err != nil {
			t.Fatal(err)
		}
		job = jobs[tag]
		return job.Phase == gridsite.Ended
	})
	return job
}
