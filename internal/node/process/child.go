package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WorkerCommand is the argument with which this program is started as a worker.
const WorkerCommand = "worker"

// Descriptors that a worker inherits: its end of the socket pair and, from a host, the host's lock. The lock is held
// until both processes have ended.
const supervisorFD, lockFD = 3, 4

const (
	// WordGap is the interval between two words of a worker, and between two messages to a host.
	WordGap = time.Second
	askTime = time.Second // for a child to accept a message
)

// A Child is a worker process, or the srun or ssh that leads to a host on another node. Its fields belong to the
// goroutine that owns the Group.
type Child struct {
	PID  int
	Last Word // its last word, if it sent one, or the fault that the supervisor found

	far  *far // nil: a worker process on this node
	conn net.Conn
	enc  *json.Encoder

	spoken bool          // it has sent a word
	quiet  time.Duration // time since its last word, without the time in which this process was suspended

	ended  bool // the process has been reaped, with status
	status syscall.WaitStatus
	silent bool // its stream has ended: no more words will arrive
}

// String describes where the child runs, for display.
func (c *Child) String() string {
	if c.far != nil {
		return fmt.Sprintf("on node %s by %s, process %d", c.far.node, c.far.way, c.PID)
	}
	return fmt.Sprintf("as process %d", c.PID)
}

// startChild starts a worker process in its own process group and sends it its order. The worker keeps the files in
// held open while it runs. The caller must run listen.
func startChild(o Order, held ...*os.File) (*Child, error) {
	c, err := launch(func(theirs *os.File) *exec.Cmd {
		return &exec.Cmd{
			Path:       "/proc/self/exe", // this program, even if its package has since been removed
			Args:       []string{"pilot", WorkerCommand},
			Dir:        o.Scratch,
			Stdout:     os.Stderr, // the job's log
			Stderr:     os.Stderr,
			ExtraFiles: append([]*os.File{theirs}, held...),
		}
	})
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	c.Tell(Ask{Order: &o})
	return c, nil
}

// launch starts a command in its own process group, with one end of a socket pair.
func launch(command func(theirs *os.File) *exec.Cmd) (*Child, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := command(theirs)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	c := &Child{PID: cmd.Process.Pid, conn: ours, enc: json.NewEncoder(ours)}
	_ = cmd.Process.Release() // Reap waits for it, as for every other child
	return c, nil
}

// Tell sends a message. A worker that does not accept it is dead or hangs, which Group.Collect and Group.KillHung
// detect.
func (c *Child) Tell(a Ask) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(askTime))
	_ = c.enc.Encode(a)
}

// Kill kills the child's process group. Its tasks have their own groups and become strays.
func (c *Child) Kill() {
	if !c.ended { // otherwise another process may have the pid by now
		_ = syscall.Kill(-c.PID, syscall.SIGKILL)
	}
}

// hangs adds the time that has passed, and reports whether the child has been silent for limit, which is local for a
// worker on this node. If so, it resets the count. A late call adds only one WordGap: a machine or batch system that
// suspends all processes of a job also suspends the child, which must not be killed for that. A host monitors its
// worker itself, so only the connection to the host is monitored. A worker process that has not sent a word never
// hangs: it may start slowly on a busy machine, and nothing waits for it yet.
func (c *Child) hangs(passed, local time.Duration) (limit time.Duration, hangs bool) {
	switch limit = local; {
	case c.far == nil && !c.spoken, c.ended:
		return limit, false
	case c.far != nil && c.spoken:
		limit = farSilence
	case c.far != nil:
		limit = farStart
	}
	if c.quiet += min(passed, WordGap); c.quiet <= limit {
		return limit, false
	}
	c.quiet = 0
	return limit, true
}

// listen sends the child's words to to, and a nil word after the last one, unless done is closed first.
func (c *Child) listen(to chan<- Said, done <-chan struct{}) {
	in := bufio.NewReader(c.conn)
	skipTo(in, mark)
	dec := json.NewDecoder(in)
	for w := new(Word); w != nil; {
		if w = new(Word); dec.Decode(w) != nil {
			w = nil
			c.awaitPrinted(done)
		}
		select {
		case to <- Said{c, w}:
		case <-done:
			return
		}
	}
}

// close closes the connections to the child.
func (c *Child) close() {
	c.conn.Close()
	if c.far != nil {
		c.far.stderr.Close()
	}
}

// gone reports whether the child is finished: it has ended, and all its words have been received.
func (c *Child) gone() bool { return c.ended && c.silent }

// Obituary describes the end of a child that did not leave voluntarily.
func (c *Child) Obituary() string {
	switch {
	case c.far != nil && c.Last.Error != "":
		return c.Last.Error // as reported by its host
	case c.far != nil:
		return c.far.obituary(c.status)
	case c.Last.Error != "":
		return "died: " + c.Last.Error
	}
	return Ending(c.status)
}

// Ending describes how a process ended.
func Ending(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("died of signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("ended with status %d", status.ExitStatus())
}

// socketPair returns a connection, and the other end as a file for a child.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(fds[0]), "worker")
	theirs = os.NewFile(uintptr(fds[1]), "supervisor")
	ours, err = net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		theirs.Close()
	}
	return ours, theirs, err
}
