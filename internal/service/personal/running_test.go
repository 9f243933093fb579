package personal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// headless is the name under which this program ends its first thread, like a process that is ending while the kernel
// has not reached its other threads, which still hold its files and locks. It ends when its input does.
const headless = "headless"

func playHeadless() {
	go func() {
		fmt.Println("started")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	runtime.LockOSThread() // the main goroutine of a program starts on its first thread: see init
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

func init() {
	if os.Args[0] == headless {
		runtime.LockOSThread()
	}
}

// A process is running until its last thread has ended, although it is shown as a zombie after the end of its first
// thread.
func TestAProcessRunsUntilItsLastThreadEnds(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{headless}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatal(line, err)
	}
	for state := ""; state != "Z"; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		state = after[:1]
		runtime.Gosched()
	}
	if !running(cmd.Process.Pid) {
		t.Error("it has ended, although its other threads run")
	}
	_ = in.Close()
	_ = cmd.Wait()
	if running(cmd.Process.Pid) {
		t.Error("it runs for ever")
	}
}
