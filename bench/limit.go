package main

// The bare loop is the yardstick: the minimum work for any task, with as little overhead as possible. It uses system
// calls where package os would make more than one, because a slow yardstick would flatter the programs measured with
// it.
//
// Each of the concurrent loops is a separate process, this program under another name (loopCommand), which reports on
// stdout when it is ready and, at the end, its resource usage.
//
// Each of the loops that work side by side is a process of its own, this program under another name (loopCommand),
// which tells on stdout when it is ready and at last what it has used.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The task of every measurement.
var noop = []string{"/bin/true"}

// loopCommand is the argument with which this program starts itself as one bare loop.
const loopCommand = "loop"

// ownSession gives the programs compared with pilots their own session, as pilots have: on a busy machine the kernel
// divides processor time among sessions.
var ownSession = &syscall.SysProcAttr{Setsid: true}

// recordSize is the size of the record.json that a worker leaves for a no-op task.
const recordSize = 305

// limit runs n tasks in the given number of concurrent bare loops, which are separate processes, so that they share no
// lock, and measures from the first to the last. They work in a new directory below the given one. A token in a pipe
// stands for a task: any free loop takes the next.
func limit(ctx context.Context, below string, n, wide int) (s sample, err error) {
	dir, err := os.MkdirTemp(below, "limit-") // the name decides where on the disk it is placed
	if err != nil {
		return s, fmt.Errorf("creating a directory for the bare loop: %w", err)
	}
	take, give, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer give.Close()
	loops, err := startLoops(ctx, dir, wide, take)
	if err != nil {
		return s, errors.Join(err, give.Close(), loops.wait(&s))
	}
	began := time.Now()
	_, err = give.Write(make([]byte, n))
	err = errors.Join(err, give.Close(), loops.wait(&s))
	s.tasks, s.span = n, time.Since(began)
	return s, err
}

// loops are the processes of a running measurement.
type loops []*bareLoop

// A bareLoop is one of the processes, and its output.
type bareLoop struct {
	cmd *exec.Cmd
	out io.ReadCloser
}

// startLoops starts the processes and returns once all of them wait for tokens.
func startLoops(ctx context.Context, dir string, wide int, tokens *os.File) (started loops, err error) {
	defer tokens.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for i := range wide {
		cmd := exec.CommandContext(ctx, self, loopCommand, filepath.Join(dir, strconv.Itoa(i)))
		cmd.Stdin, cmd.Stderr, cmd.SysProcAttr = tokens, os.Stderr, ownSession
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return started, fmt.Errorf("starting a bare loop: %w", err)
		}
		started = append(started, &bareLoop{cmd, out})
	}
	for _, l := range started {
		if _, err := l.out.Read(make([]byte, 1)); err != nil {
			return started, fmt.Errorf("starting a bare loop: %w", err)
		}
	}
	return started, nil
}

// wait waits for all loops to end and adds up their usage.
func (all loops) wait(s *sample) error {
	var errs []error
	for _, l := range all {
		var u usage
		_, scanErr := fmt.Fscan(l.out, &u.self, &u.children)
		if err := errors.Join(l.cmd.Wait(), scanErr); err != nil {
			errs = append(errs, fmt.Errorf("a bare loop: %w", err))
		}
		s.cost[partRunner] += u.self
		s.cost[partTasks] += u.children
	}
	return errors.Join(errs...)
}

// loop is one bare loop: it runs a task below dir for each byte of tokens, and finally prints the processor time of
// itself and the tasks.
func loop(dir string, tokens *os.File, out io.Writer) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fmt.Fprintln(out) // ready
	record, token := make([]byte, recordSize), make([]byte, 1)
	for i := 0; ; i++ {
		if n, err := syscall.Read(int(tokens.Fd()), token); n == 0 || err != nil {
			return errors.Join(err, tellUsage(out))
		}
		if err := bareTask(dir+"/"+strconv.Itoa(i), null, record); err != nil {
			return err
		}
	}
}

// tellUsage prints the processor time of this process and its children.
func tellUsage(out io.Writer) error {
	var self, children syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &self),
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, self.Utime.Nano()+self.Stime.Nano(), children.Utime.Nano()+children.Stime.Nano())
	return err
}

// bareTask does the indispensable work for a task: its directory, its output files, its process, its record.
func bareTask(dir string, null int, record []byte) error {
	if err := syscall.Mkdir(dir, 0o777); err != nil {
		return err
	}
	stdout, err := create(dir + "/stdout")
	if err != nil {
		return err
	}
	stderr, err := create(dir + "/stderr")
	if err != nil {
		return err
	}
	files := []uintptr{uintptr(null), uintptr(stdout), uintptr(stderr)}
	pid, err := syscall.ForkExec(noop[0], noop, &syscall.ProcAttr{Dir: dir, Env: os.Environ(), Files: files})
	if err != nil {
		return err
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	if err := errors.Join(err, syscall.Close(stdout), syscall.Close(stderr)); err != nil {
		return err
	}
	return bareRecord(dir+"/record.json", record)
}

// bareRecord writes the record that a worker leaves for each task.
func bareRecord(name string, record []byte) error {
	fd, err := create(name)
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, record)
	return errors.Join(err, syscall.Close(fd))
}

// create opens a new file for writing and returns its descriptor.
func create(name string) (int, error) {
	return syscall.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_CLOEXEC, 0o666)
}

// measureLimit measures only the bare loop, several times.
func (p plan) measureLimit(ctx context.Context, dir string) error {
	var rates spread
	for range p.rounds {
		s, err := limit(ctx, dir, p.tasks, width)
		if err != nil {
			return err
		}
		rates = append(rates, s.rate())
		fmt.Fprintf(p.stdout, "%d tasks, %d wide, in %s: %.0f tasks/s, %s of processor time a task\n",
			p.tasks, width, s.span.Round(time.Millisecond), s.rate(), s.each(s.cost.sum()))
	}
	_, err := fmt.Fprintf(p.stdout, "median %.0f tasks/s\n", rates.median())
	return err
}
