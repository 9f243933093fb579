package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	farStart   = 2 * time.Minute        // for srun or ssh to start a host
	farSilence = 30 * time.Second       // without a word for so long, a host or the way to it is lost
	farPrinted = 500 * time.Millisecond // for the last of what srun or ssh printed to be read
	maxPrinted = 300                    // bytes of that which an obituary repeats
	lastLines  = 5                      // of it that are remembered
)

// far is what a child has besides a process if a host on another node is at its other end. Login shells, prologues and
// srun itself print on both streams: on stdout everything before hostMark is skipped, and what comes on stderr goes to
// the job's log, its last lines being all there is to say when the way to the host breaks.
type far struct {
	way, node string
	beatAt    time.Time     // of the last ask
	stderr    *os.File      // of srun or ssh, and through them of the host
	read      chan struct{} // closed when all of stderr has been read

	mu    sync.Mutex // guards lines
	lines []string   // the last of stderr that are not a worker's log
}

// startFar starts a host on a node. The caller must run both listen methods, and give the order when it has heard a
// Hello.
func startFar(f Fanout, node string) (*Child, error) {
	argv, first := f.command(node)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	stderr, printed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer printed.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		stderr.Close()
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: path, Args: argv, Stdin: theirs, Stdout: theirs, Stderr: printed,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		stderr.Close()
		return nil, err
	}
	there := &far{way: f.way, node: node, stderr: stderr, read: make(chan struct{})}
	c := &Child{PID: cmd.Process.Pid, conn: ours, enc: json.NewEncoder(ours), far: there}
	_ = cmd.Process.Release()        // Reap waits for it
	_, _ = ours.Write([]byte(first)) // it fits; a process that has already ended leaves its status
	return c, nil
}

// listen copies stderr to the job's log.
func (f *far) listen() {
	defer close(f.read)
	lines := bufio.NewReader(f.stderr)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			_, _ = os.Stderr.WriteString(line)
			f.remember(strings.TrimSpace(line))
		}
		if err != nil {
			return
		}
	}
}

// remember keeps what srun or ssh, or the node's shell, print themselves: a host's log lines begin with their time.
func (f *far) remember(line string) {
	if line == "" || strings.HasPrefix(line, "time=") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines[max(0, len(f.lines)-lastLines+1):], line)
}

// obituary says how the way to a host ended that said no last word.
func (f *far) obituary(status syscall.WaitStatus) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	printed := strings.Join(f.lines, "; ")
	if len(printed) > maxPrinted {
		printed = strings.ToValidUTF8(printed[:maxPrinted], "")
	}
	if printed == "" {
		return Ending(f.way, status)
	}
	return Ending(f.way, status) + ": " + printed
}

// awaitPrinted waits until everything that srun or ssh printed has been read, but not for long: another process may
// hold the pipe open.
func (c *Child) awaitPrinted(done <-chan struct{}) {
	if c.far == nil {
		return
	}
	patience := time.NewTimer(farPrinted)
	defer patience.Stop()
	select {
	case <-c.far.read:
	case <-patience.C:
	case <-done:
	}
}

// skipTo reads up to a line and the end of it, or to the end of in.
func skipTo(in *bufio.Reader, line string) {
	for {
		got, err := in.ReadSlice('\n')
		if string(bytes.TrimSpace(got)) == line || err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}
