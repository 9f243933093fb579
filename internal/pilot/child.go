package pilot

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

// WorkerCommand is the argument with which the supervisor starts its own program as a worker.
const WorkerCommand = "worker"

// What a worker inherits: its end of the socket pair, and, on another node than the supervisor's, its host's lock, which
// lasts as long as either of them.
const supervisorFD, lockFD = 3, 4

// An ask is what a supervisor tells a worker, or the host of one: first its order, later to drain or to leave. The end of
// the stream means leave, too: the supervisor is gone. A host hears an empty one now and then.
type ask struct {
	Order      *workerOrder `json:"order,omitempty"`
	Host       *hostOrder   `json:"host,omitempty"`
	Drain      bool         `json:"drain,omitempty"`
	Leave      bool         `json:"leave,omitempty"`
	CalledBack *calledBack  `json:"called_back,omitempty"`
}

// A workerOrder is all that a worker needs to know.
type workerOrder struct {
	ID         string        `json:"id"`
	Tag        string        `json:"tag"`
	Token      string        `json:"token"`
	Holder     string        `json:"holder"`
	Host       string        `json:"host"` // as the batch system calls the node, if it does
	Addresses  []string      `json:"addresses"`
	CertDigest string        `json:"cert_digest"`
	CPUs       int           `json:"cpus"`
	MemoryMiB  int           `json:"memory_mib"`
	EndsIn     time.Duration `json:"ends_in_ns"`
	Scratch    string        `json:"scratch"`
	Condor     *joinOrder    `json:"condor,omitempty"` // join an HTCondor pool; nil: corrald's own
}

// A word is what a worker tells its supervisor, an empty one each wordGap to show that it runs. Idle is
// how long it has had nothing to do, 0 when it has something; it is told about every second while the
// worker is idle and has its dispatcher. Left is its last word; an Error without it is how it died, and
// may do better when it is started again.
type word struct {
	Registered bool           `json:"registered,omitempty"` // once more
	Idle       *time.Duration `json:"idle_ns,omitempty"`
	Left       string         `json:"left,omitempty"`
	Error      string         `json:"error,omitempty"`

	// Of a host only.
	Hello    *hello    `json:"hello,omitempty"` // its first word
	Note     string    `json:"note,omitempty"`  // for the log
	CallBack *callBack `json:"call_back,omitempty"`
}

// A hello is how a host begins.
type hello struct {
	Now  time.Time `json:"now"` // by its clock
	Host string    `json:"host"`
	PID  int       `json:"pid"`
}

// A child is a worker process, or what talks with a host on another node. Its fields belong to the goroutine of who
// started it.
type child struct {
	pid  int
	far  *far // nil: a worker process on this node
	conn net.Conn
	enc  *json.Encoder

	spoken bool          // it has said a word
	quiet  time.Duration // since its last one, as far as we were awake ourselves

	ended  bool // the process has been reaped, with status
	status syscall.WaitStatus
	silent bool // its stream has ended: it has said all
	last   word // its last word, if it said one
}

// said is something that a child said; nil: that it will say no more.
type said struct {
	by   *child
	word *word
}

// startChild starts a worker process in a process group of its own and gives it its order, and what else it should hold.
// The caller must run listen.
func startChild(o workerOrder, held ...*os.File) (*child, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe", // our own program, even if the package was removed meanwhile
		Args:        []string{"pilot", WorkerCommand},
		Dir:         o.Scratch,
		Stdout:      os.Stderr, // the job's log
		Stderr:      os.Stderr,
		ExtraFiles:  append([]*os.File{theirs}, held...),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	c := &child{pid: cmd.Process.Pid, conn: ours, enc: json.NewEncoder(ours)}
	_ = cmd.Process.Release() // reap waits for it, as for every other child
	c.tell(ask{Order: &o})
	return c, nil
}

// tell sends an ask. A worker that does not take it is dead or hung, see collect and killHung.
func (c *child) tell(a ask) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = c.enc.Encode(a)
}

// kill ends the worker's process group. The groups of its tasks become strays.
func (c *child) kill() {
	if !c.ended { // else the number may be another's by now
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

// hangs reports whether the child has not said a word for limit, after passed more of our time; it begins anew then.
func (c *child) hangs(passed, limit time.Duration) bool {
	if c.quiet += min(passed, wordGap); c.ended || c.quiet <= limit {
		return false
	}
	c.quiet = 0
	return true
}

// listen sends what the child says to to, and at last that it is silent, unless done is closed first.
func (c *child) listen(to chan<- said, done <-chan struct{}) {
	in := bufio.NewReader(c.conn)
	if c.far != nil {
		skipTo(in, hostMark)
	}
	dec := json.NewDecoder(in)
	for more := true; more; {
		w := new(word)
		if more = dec.Decode(w) == nil; !more {
			w = nil
			c.awaitWords(done)
		}
		select {
		case to <- said{c, w}:
		case <-done:
			return
		}
	}
}

// awaitWords waits until all is read that srun or ssh printed, but not for long: something else may hold the pipe.
func (c *child) awaitWords(done <-chan struct{}) {
	if c.far == nil {
		return
	}
	patience := time.NewTimer(farWords)
	defer patience.Stop()
	select {
	case <-c.far.read:
	case <-patience.C:
	case <-done:
	}
}

// close ends the talk.
func (c *child) close() {
	c.conn.Close()
	if c.far != nil {
		c.far.stderr.Close()
	}
}

// gone reports whether nothing more will come of the child.
func (c *child) gone() bool { return c.ended && c.silent }

// obituary says how a child that is gone ended without having left.
func (c *child) obituary() string {
	switch {
	case c.far != nil && c.last.Error != "":
		return c.last.Error // its host's words
	case c.far != nil:
		return c.far.obituary(c.status)
	case c.last.Error != "":
		return "died: " + c.last.Error
	}
	if c.status.Signaled() {
		return fmt.Sprintf("died of signal %d (%s)", c.status.Signal(), c.status.Signal())
	}
	return fmt.Sprintf("ended with status %d", c.status.ExitStatus())
}

// socketPair returns a connection and the file of its other end, for a child.
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
