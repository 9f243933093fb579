package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Process is a PRE or POST script of a workflow that is to run: a process beside corrald, of its user.
//
// It has a folder, a command and the environment that tasks have, and prints into one file. It leads a process group,
// which is killed with it; the kernel kills it if corrald dies first. Its command does not go through a shell.
type Process struct {
	Argv   []string // its program is a file below Dir; if it has no slash and is not there, a command in PATH
	Dir    string   // where it runs; it is made if it is not there
	Env    []string
	Output string // the file that it prints into, which is removed if it stays empty; its folder is made
}

// Run runs a process to its end, or until ctx ends, which kills it. Its exit status is -N if it died of signal N, and
// -1 if it could not be started. Unless that is 0, err says why, in half a sentence.
func (p Process) Run(ctx context.Context) (exit int, err error) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.Output), 0o700), os.MkdirAll(p.Dir, 0o700)); err != nil {
		return -1, err
	}
	out, err := os.OpenFile(p.Output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return -1, err
	}
	defer leave(out)
	err = p.command(ctx, out).Run()
	ended, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case !ok:
		return -1, err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal()), fmt.Errorf("killed by signal %d", int(status.Signal()))
	}
	return ended.ExitCode(), fmt.Errorf("exit status %d", ended.ExitCode())
}

// grace is how long what a script left behind may hold its output open.
const grace = time.Second

func (p Process) command(ctx context.Context, out *os.File) *exec.Cmd {
	program := p.Argv[0]
	if !filepath.IsAbs(program) {
		beside := filepath.Join(p.Dir, program)
		if _, err := os.Stat(beside); err == nil || strings.Contains(program, "/") {
			program = beside
		}
	}
	cmd := exec.CommandContext(ctx, program, p.Argv[1:]...)
	cmd.Args[0] = p.Argv[0]
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace
	return cmd
}

// leave closes a file, and removes it if it is empty.
func leave(f *os.File) {
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		_ = os.Remove(f.Name())
	}
	_ = f.Close()
}
