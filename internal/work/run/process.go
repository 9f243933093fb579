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

// A Process is a PRE or POST script of a workflow to run: a process on corrald's host, with corrald's user.
//
// It has a folder, a command and the environment of tasks, and prints to one file. It leads a process group, which is
// killed with it; the kernel kills it if corrald dies first. Its command is not interpreted by a shell.
type Process struct {
	Argv   []string // the program is a file below Dir, or else, without a slash, a command in PATH
	Dir    string   // working directory; created if necessary
	Env    []string
	Output string // file for its output, which is removed if it remains empty; its folder is created
}

// Run runs a process until it ends, or until ctx ends, which kills it. The exit status is -N if signal N killed the
// process, and -1 if it could not be started. If the exit status is not 0, err explains it in half a sentence.
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

// grace is the maximum time for which processes left behind by a script may hold its output open.
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
