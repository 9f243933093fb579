package ptrace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// deedVariable is the variable that makes the test's own program perform one of the deeds, if a shell cannot be the
// traced command.
const deedVariable = "CORRAL_TEST_DEED"

// deeds are the program's actions, with the arguments that follow.
var deeds = map[string]func(args []string) error{
	"copy": copyDeed, "otherways": otherWays, "foreignexec": foreignExec, "hold": hold, "overlap": overlap,
	"burn": burn, "trace": traceDeed, "threads": threadsDeed,
}

func TestMain(m *testing.M) {
	deed, ok := deeds[os.Getenv(deedVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := deed(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// self returns a command that makes this program perform a deed.
func self(deed string, args ...string) Command {
	return Command{Path: "/proc/self/exe", Argv: append([]string{deed}, args...), Attr: syscall.ProcAttr{
		Env: append(os.Environ(), deedVariable+"="+deed), Files: []uintptr{0, 1, 2},
	}}
}

// shell returns a command that runs a shell script.
func shell(script string) Command {
	return Command{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Attr: syscall.ProcAttr{
		Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Files: []uintptr{0, 1, 2},
	}}
}

// traced traces a command that must end within minutes.
func traced(t *testing.T, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := Run(ctx, c)
	if err != nil {
		t.Fatalf("Run(%q) = %v", c.Argv, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("Run(%q) did not end", c.Argv)
	}
	return r
}

// well is traced for a command that must succeed.
func well(t *testing.T, c Command) trace.Trace {
	t.Helper()
	r := traced(t, c)
	if !r.Trace.OK() {
		t.Fatalf("Run(%q) ended with %d %s", c.Argv, r.Trace.Exit, r.Trace.Signal)
	}
	return r.Trace
}

// copyDeed copies the first file to the second in pieces of the given size, and sends its content through a pipe and a
// pair of sockets.
func copyDeed(args []string) error {
	piece, _ := strconv.Atoi(args[2])
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	to, err := os.Create(args[1])
	if err != nil {
		return err
	}
	for rest := content; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		if _, err := to.Write(rest[:min(piece, len(rest))]); err != nil {
			return err
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	if err := through(w, r, content); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	a, b := os.NewFile(uintptr(pair[0]), "a"), os.NewFile(uintptr(pair[1]), "b")
	if err := through(a, b, content); err != nil {
		return err
	}
	fmt.Println(len(content))
	return to.Close()
}

// through writes to one end and reads everything from the other.
func through(w io.WriteCloser, r io.Reader, content []byte) error {
	sent := make(chan error)
	go func() {
		_, err := w.Write(content)
		sent <- errors.Join(err, w.Close())
	}()
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != int64(len(content)) {
		err = fmt.Errorf("%d bytes of %d came", n, len(content))
	}
	return errors.Join(err, <-sent)
}

// otherWays moves bytes of the first file to the second with every call except read and write: each call moves the next
// 1,000 bytes.
func otherWays(args []string) error {
	const size = 1000
	in, err := os.Open(args[0])
	if err != nil {
		return err
	}
	out, err := os.Create(args[1])
	if err != nil {
		return err
	}
	from, to := int(in.Fd()), int(out.Fd())
	var pipe [2]int
	buffer := make([]byte, size)
	at := func(n int64) *int64 { return &n }
	for _, step := range []func() (int, error){
		func() (int, error) { return unix.Sendfile(to, from, at(0), size) },
		func() (int, error) { return unix.CopyFileRange(from, at(0), to, at(size), size, 0) },
		func() (int, error) { return size, unix.Pipe2(pipe[:], 0) },
		func() (int, error) {
			n, err := unix.Splice(from, at(0), pipe[1], nil, size, 0)
			return int(n), err
		},
		func() (int, error) {
			n, err := unix.Splice(pipe[0], nil, to, at(2*size), size, 0)
			return int(n), err
		},
		func() (int, error) {
			return unix.Vmsplice(pipe[1], []unix.Iovec{{Base: &buffer[0], Len: size}}, 0)
		},
		func() (int, error) { return unix.Read(pipe[0], buffer) },
		func() (int, error) { return unix.Preadv2(from, [][]byte{buffer}, 0, 0) },
		func() (int, error) { return unix.Pwritev2(to, [][]byte{buffer}, 3*size, 0) },
		func() (int, error) { return unix.Pread(from, buffer, 0) },
		func() (int, error) { return unix.Pwrite(to, buffer, 4*size) },
		func() (int, error) {
			b, err := unix.Mmap(from, 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
			return len(b), err
		},
	} {
		if n, err := step(); err != nil || n != size {
			return fmt.Errorf("a step moved %d bytes: %w", n, err)
		}
	}
	return messages()
}

// messages sends two datagrams with one call and receives both with another, and makes a call that is not accounted
// for.
func messages() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	type header struct {
		unix.Msghdr
		n uint32
		_ uint32
	}
	var room [2][100]byte
	var parts [2]unix.Iovec
	var headers [2]header
	for i := range headers {
		parts[i] = unix.Iovec{Base: &room[i][0], Len: uint64(30 + 40*i)}
		headers[i].Iov, headers[i].Iovlen = &parts[i], 1
	}
	for i, nr := range []uintptr{unix.SYS_SENDMMSG, unix.SYS_RECVMMSG} {
		n, _, errno := unix.Syscall6(nr, uintptr(pair[i]), uintptr(unsafe.Pointer(&headers[0])), 2, 0, 0, 0)
		if errno != 0 || n != 2 {
			return fmt.Errorf("%d messages: %w", n, errno)
		}
	}
	_, _, _ = unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0) // fails, and is counted nevertheless
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(pair[0]), unix.FICLONE, uintptr(pair[1]))
	local := []unix.Iovec{{Base: &room[0][0], Len: 8}}
	_, err = unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&room[1])), Len: 8}}, 0)
	return err
}

// foreignExec executes a program from a thread that is not the process's first thread, while other threads run.
func foreignExec(args []string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			go func() { done <- foreignExec(args) }() // this thread is the first one
			select {}
		}
		done <- syscall.Exec(args[0], args, os.Environ())
	}()
	return <-done
}

// threadsDeed starts threads that end.
func threadsDeed([]string) error {
	done := make(chan bool)
	for range 10 {
		go func() {
			runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
			done <- true
		}()
	}
	for range 10 {
		<-done
	}
	return nil
}

// hold allocates the given number of MiB, prints a line, and ends when its input does.
func hold(args []string) error {
	mib, _ := strconv.Atoi(args[0])
	_, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err == nil {
		fmt.Println("ready")
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// child starts this program for another deed, and returns the other ends of its input and output. Package os/exec would
// start additional processes.
func child(deed, arg string) (pid int, in, out *os.File, err error) {
	childIn, in, err1 := os.Pipe()
	out, childOut, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return 0, nil, nil, err
	}
	defer childIn.Close()
	defer childOut.Close()
	pid, err = syscall.ForkExec("/proc/self/exe", []string{deed, arg}, &syscall.ProcAttr{
		Env:   append([]string{deedVariable + "=" + deed}, os.Environ()...), // the first value counts
		Files: []uintptr{childIn.Fd(), childOut.Fd(), 2},
	})
	return pid, in, out, err
}

// collectChild ends the input of a process that child started, and waits for the process.
func collectChild(pid int, in *os.File) error {
	err := in.Close()
	_, waiting := syscall.Wait4(pid, nil, 0, nil)
	return errors.Join(err, waiting)
}

// overlap makes two processes hold memory at the same time, or one after the other.
func overlap(args []string) error {
	var pids []int
	var inputs []*os.File
	for range 2 {
		pid, in, out, err := child("hold", args[1])
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			return err
		}
		if args[0] == "in turn" {
			if err := collectChild(pid, in); err != nil {
				return err
			}
			continue
		}
		pids, inputs = append(pids, pid), append(inputs, in)
	}
	for i, pid := range pids {
		if err := collectChild(pid, inputs[i]); err != nil {
			return err
		}
	}
	return nil
}

// burn uses the given number of milliseconds of CPU time; with a second argument it does so in two processes.
func burn(args []string) error {
	ms, _ := strconv.Atoi(args[0])
	pid, in := 0, (*os.File)(nil)
	if len(args) > 1 {
		var err error
		if pid, in, _, err = child("burn", args[0]); err != nil {
			return err
		}
	}
	for threadTime() < time.Duration(ms)*time.Millisecond {
	}
	if pid == 0 {
		return nil
	}
	return collectChild(pid, in)
}

// traceDeed is itself a tracer, possibly of another user.
func traceDeed(args []string) error {
	if unix.Geteuid() == 0 && args[0] != "root" {
		return errors.New("it is still root")
	}
	c := shell(strings.Join(args[1:], " "))
	c.Mode = trace.IO
	r, err := Run(context.Background(), c)
	if err != nil {
		return err
	}
	line, err := r.Trace.Line()
	if err == nil {
		_, err = os.Stdout.Write(line)
	}
	return err
}
