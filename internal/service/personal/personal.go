// Package personal starts and stops a user's own corrald: one background process on a Unix socket, with its files
// where package xdg specifies.
//
// Nothing is remembered between two calls; each call examines the machine. Three traces show what is running: the lock
// on the database, which the kernel releases with its process (stateDir.holder), the note of its sockets (Whereabouts),
// and its answer on the socket (Corrald.Answers). A process id from a file is never trusted by itself, because it may
// now belong to any process; nor is a socket, because another user may have put it there (Located).
//
// The parts of the package: starting, stopping and erasing a Corrald (personal.go); its sockets, and who could
// impersonate it (where.go); the initial setup of a new one and the removal of everything (setup.go, queue.go,
// purge.go); the checks of `corral doctor`, which change nothing (doctor.go, htcondor.go, ssh.go).
package personal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/node/runas"
)

// Names of the initial objects of a personal setup.
const (
	Site    = "local"
	Cluster = "default"
)

const (
	// startTimeout is how long corrald may take to answer. If corrald ends before that, this is noticed at once; on a
	// busy machine, or during the migration of a large database, it may take a long time.
	startTimeout = 2 * time.Minute
	// faster is how long another corrald, started at the same moment, may take to answer after ours has failed.
	faster = 2 * time.Second
	// patience is how long a corrald that holds the database's lock may take to answer or to end.
	patience = 5 * time.Second
)

// A Corrald is a user's own corrald, running or not.
type Corrald struct {
	Layout xdg.Layout
	RunAs  string // the user that root's corrald runs as; "": the owner of an existing state, otherwise root
}

// args returns arguments that pass corrald its layout, so that corrald never depends on an inherited environment.
func (c Corrald) args(runAs string) []string {
	l := c.Layout
	return []string{"--state", l.State, "--cache", l.Cache, "--data", l.Data, "--socket", l.Socket, "--worker-socket",
		l.Worker, "--run-as", runAs}
}

// user returns the user that corrald must run as. An earlier corrald's state belongs to its user.
func (c Corrald) user() (name string, u runas.User, err error) {
	name = c.RunAs
	if name == "" && os.Getuid() == 0 {
		if name, err = runas.Owner(c.Layout.State); err != nil {
			return "", u, err
		}
	}
	if u, err = runas.Find(name); err != nil {
		err = corral.ErrorAt(corral.KindOf(err), "--run-as", "%w", err)
	}
	return name, u, err
}

// Client returns a client for corrald's socket, wherever it listens.
func (c Corrald) Client() (*api.Client, error) {
	c, err := c.Located()
	if err != nil {
		return nil, err
	}
	return api.New("unix:" + c.Layout.Socket)
}

// Answers reports whether corrald is running and answers.
func (c Corrald) Answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := c.Located()
	if err != nil {
		return false
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.Layout.Socket) // the client would retry repeatedly
	if err != nil {
		return false
	}
	_ = conn.Close()
	cl, err := c.Client()
	if err != nil {
		return false
	}
	defer cl.Close()
	_, err = cl.Health(ctx)
	return err == nil
}

// awaitAnswer reports whether corrald answers. If a process holds the database's lock but does not answer,
// awaitAnswer waits a little, because it may be starting or stopping; silent is the process id if it does neither.
func (c Corrald) awaitAnswer(ctx context.Context) (answers bool, silent int) {
	over := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !c.Answers(ctx) {
		silent = stateDir(c.Layout).holder()
		if silent == 0 || ctx.Err() != nil || time.Now().After(over) {
			return false, silent
		}
		<-tick.C
	}
	return true, 0
}

// busy returns the Unavailable error for the process that holds the database's lock but does not answer.
func (c Corrald) busy(process int) error {
	if err := c.Lost(); err != nil {
		return err
	}
	return corral.Errorf(corral.Unavailable, "corrald (process %d) is running but does not answer: %s", process,
		patiently(process))
}

// patiently returns the advice for a process that does not answer.
func patiently(process int) string { return fmt.Sprintf("try again, or `kill %d`", process) }

// Exists reports whether there is a state directory, whether or not corrald is running.
func (c Corrald) Exists() bool {
	_, err := os.Stat(c.Layout.State)
	return err == nil
}

// PID returns the process id in the pid file, or 0 if there is none.
func (c Corrald) PID() int {
	b, err := readSmall(c.Layout.PID())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// Start starts corrald in the background unless it is already responding, and returns once it responds; started is
// false if another process started it first. The process outlives this one.
//
// Two simultaneous calls both start a corrald. The lock on the database lets only one of them serve; the other
// process ends by itself or is killed here, and both calls return with the one that serves.
func (c Corrald) Start(ctx context.Context) (started bool, err error) {
	if _, err := c.Located(); err != nil {
		return false, err
	}
	// a corrald that answers is sufficient; one that holds the lock but does not answer must not get a second one
	// beside it
	switch answers, silent := c.awaitAnswer(ctx); {
	case answers:
		return false, c.compareUser(ctx)
	case silent != 0:
		return false, c.busy(silent)
	}
	program, err := FindCorrald()
	if err != nil {
		return false, err
	}
	name, u, err := c.user()
	if err != nil {
		return false, err
	}
	log, before, err := openLog(c.Layout, u)
	if err != nil {
		return false, err
	}
	defer log.Close()
	// a lock held by a calling script must not be held as long as corrald runs
	if err := proc.CloseOnExec(); err != nil {
		return false, err
	}
	// a separate session: corrald must survive the end of the terminal, or Ctrl-C in it
	cmd := exec.Command(program, c.args(name)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	words, written, err := givePipe(cmd)
	if err != nil {
		return false, err
	}
	defer words.Close()
	err = cmd.Start()
	if err = errors.Join(err, written.Close()); err != nil {
		return false, fmt.Errorf("starting corrald: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // cmd.ProcessState has the result
	}()
	last := func() string { return lastOf(words, c.Layout.Log(), before, cmd.ProcessState) }
	if err := c.awaitStart(ctx, ended, last); err != nil {
		return false, err
	}
	if started = c.PID() == cmd.Process.Pid; !started { // otherwise it might take the lock later
		_ = cmd.Process.Kill()
		<-ended
	}
	return started, nil
}

// openLog creates the directories, opens the log and returns its size. The state's owner may have replaced the log with
// another kind of file, which root must not write to.
func openLog(l xdg.Layout, u runas.User) (log *os.File, size int64, err error) {
	dirs := l.Dirs()
	slices.Reverse(dirs) // the state directory is last: if it exists, corrald has run
	for _, dir := range dirs {
		if err := u.Make(dir); err != nil {
			return nil, 0, err
		}
	}
	log, err = os.OpenFile(l.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		size, err = log.Seek(0, io.SeekEnd)
		err = errors.Join(err, u.Own(log))
	}
	return log, size, wrap.Errorf(err, "opening the log")
}

// compareUser returns an error if corrald runs as a user other than the requested one.
func (c Corrald) compareUser(ctx context.Context) error {
	user, err := c.User(ctx)
	if err == nil && c.RunAs != "" && user != c.RunAs {
		err = corral.ErrorAt(corral.Conflict, "--run-as",
			"corrald (process %d) is already running as %s: stop it with `corral down` first", c.PID(), user)
	}
	return err
}

// User returns the user that corrald runs as.
func (c Corrald) User(ctx context.Context) (string, error) {
	cl, err := c.Client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	h, err := cl.Health(ctx)
	return h.User, err
}

// awaitStart returns nil once corrald answers or, after corrald has ended, an error with its last words. It may have
// ended because another process was faster, whose corrald will answer a little later. awaitStart therefore waits for
// that corrald before the end counts as a failure.
func (c Corrald) awaitStart(ctx context.Context, ended <-chan struct{}, last func() string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var over <-chan time.Time
	for {
		select {
		case <-ended:
			ended, over = nil, time.After(faster)
		case <-over:
			if silent := stateDir(c.Layout).holder(); silent != 0 {
				return c.busy(silent)
			}
			return corral.Errorf(corral.Failed, "corrald ended at once: %s", last())
		case <-ctx.Done():
			return corral.Errorf(corral.Unavailable, "corrald does not answer; its log is %s", c.Layout.Log())
		case <-tick.C:
			if c.Answers(ctx) {
				return nil
			}
		}
	}
}

// FindCorrald returns the corrald beside this program, or otherwise the one on the PATH.
func FindCorrald() (string, error) {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), "corrald")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	program, err := exec.LookPath("corrald")
	if err != nil {
		return "", corral.Errorf(corral.Invalid,
			"there is no corrald beside this program or on the PATH: build it with `make build`")
	}
	return filepath.Abs(program)
}

// Stop ends corrald with SIGTERM and returns once its process has ended. It verifies that the process id is still
// corrald's by its lock or by an answer, and that the process belongs to the state's owner. Otherwise it kills
// nothing.
func (c Corrald) Stop(ctx context.Context) error {
	pid := c.PID()
	if pid == 0 || (pid != stateDir(c.Layout).holder() && !c.Answers(ctx)) { // a busy corrald may not answer
		return nil
	}
	if owner, err := runas.Owner(fmt.Sprintf("/proc/%d", pid)); err != nil || owner != stateDir(c.Layout).owner() {
		return corral.Errorf(corral.Failed,
			"according to %s corrald is process %d, which belongs to another user: stop corrald by hand",
			c.Layout.PID(), pid)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending corrald (process %d): %w", pid, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for running(pid) {
		select {
		case <-ctx.Done():
			return corral.Errorf(corral.Unknown, "corrald (process %d) has not ended yet", pid)
		case <-tick.C:
		}
	}
	return nil
}

// owner returns the owner of the state, or "" if it is the present user.
func (s stateDir) owner() string {
	name, _ := runas.Owner(s.State)
	return name
}

// running reports whether the process exists and is not a zombie, which has ended and waits for its parent. A process
// that is ending is shown as a zombie as soon as its first thread has ended: until its last thread has ended, it
// still holds its locks.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	if !ok || !strings.HasPrefix(after, "Z") {
		return ok
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(threads) > 1
}

// Erase deletes the files of a stopped corrald: state, caches and sockets. Run directories stay unless purge is set.
func (c Corrald) Erase(purge bool) error {
	paths := []string{c.Layout.Socket, c.Layout.Worker, c.Layout.State, c.Layout.Cache, c.Layout.Downloads()}
	if purge {
		paths = append(paths, c.Layout.Data)
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("deleting %s: %w", p, err)
		}
	}
	removeEmpty(filepath.Dir(c.Layout.Socket))
	removeEmpty(c.Layout.Runs())
	removeEmpty(c.Layout.Data)
	if above := filepath.Dir(c.Layout.State); filepath.Base(above) == "corral" { // the service's own folder
		removeEmpty(above)
	}
	return nil
}

// removeEmpty removes a directory of ours if it is empty.
func removeEmpty(dir string) {
	_ = os.Remove(dir) // it fails if the directory contains other files
}
