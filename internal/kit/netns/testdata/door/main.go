// Command door lets other processes on this machine start shells on a host of package netns, as a site's login node
// does on its batch nodes. `door serve SOCKET` runs on the host; `door enter SOCKET ARGS…` runs anywhere: it acts like
// /bin/sh ARGS… on the host, with the caller's input, output, environment, directory and the shell's exit status.
//
// Entering a network namespace requires rights in the user namespace that owns it, which a batch system's user does not
// have. A shell started on the other side requires none: the two sides share the file system, and a socket in it passes
// the caller's open files.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// maxRequest limits the size of a request, which is one packet.
const maxRequest = 160 << 10

// A request is sent together with the files of stdin, stdout and stderr. The answer is one byte, the exit status.
type request struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("usage: door serve|enter SOCKET ARGS…"))
	}
	at := &net.UnixAddr{Net: "unixpacket", Name: os.Args[2]}
	switch os.Args[1] {
	case "serve":
		fail(serve(at))
	case "enter":
		status, err := enter(at, os.Args[3:])
		fail(err)
		os.Exit(status)
	}
}

// fail ends the program with the status that env and timeout use for their own errors.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "door:", err)
		os.Exit(125)
	}
}

// serve answers requests until its input ends, which happens when the test's process ends. It prints a line when it is
// ready for requests.
func serve(at *net.UnixAddr) error {
	l, err := net.ListenUnix(at.Net, at)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("open")
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if err := attend(conn); err != nil {
				fmt.Fprintln(os.Stderr, "door:", err)
			}
		}()
	}
}

// attend runs the requested shell. If the caller ends first, which closes the connection, attend kills the shell and
// everything that it has started: they form a process group.
func attend(conn *net.UnixConn) error {
	body, control := make([]byte, maxRequest), make([]byte, syscall.CmsgSpace(3*4))
	n, nc, _, _, err := conn.ReadMsgUnix(body, control)
	if err != nil {
		return err
	}
	var r request
	if err := json.Unmarshal(body[:n], &r); err != nil {
		return err
	}
	files, err := received(control[:nc])
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", r.Args...)
	cmd.Env, cmd.Dir = r.Env, r.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // the caller sends no more data: this returns when the connection ends
		select {
		case <-over:
		default:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	_ = cmd.Wait() // the process state has the result
	close(over)
	status := cmd.ProcessState.ExitCode()
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		status = 128 + int(w.Signal())
	}
	_, err = conn.Write([]byte{byte(status)})
	return err
}

// received returns the files sent with a request. They must not be inherited by other shells that are started at the
// same time.
func received(control []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if len(files) != 3 {
		return nil, fmt.Errorf("%d files were sent, want 3", len(files))
	}
	return files, nil
}

// enter runs a shell on the other side and returns its exit status.
func enter(at *net.UnixAddr, args []string) (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(request{Args: args, Env: os.Environ(), Dir: dir})
	if err != nil {
		return 0, err
	}
	conn, err := net.DialUnix(at.Net, nil, at)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, _, err := conn.WriteMsgUnix(body, syscall.UnixRights(0, 1, 2), nil); err != nil {
		return 0, err
	}
	status := make([]byte, 1)
	if _, err := io.ReadFull(conn, status); err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	return int(status[0]), nil
}
