package pilot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/node"
)

const (
	farStart   = 2 * time.Minute        // for srun or ssh to start a host
	farSilence = 30 * time.Second       // without a word a host, or the way to it, is lost
	farWords   = 500 * time.Millisecond // for the last of what srun or ssh printed to be read
	maxWords   = 300                    // bytes of what they printed that are told
)

// far is what a child is beside a process: srun or ssh, with a host on another node at its other end.
type far struct {
	way, node string
	beatAt    time.Time     // of the last ask
	stderr    *os.File      // what srun or ssh print, and through them the host
	read      chan struct{} // closed when all of that was read

	mu    sync.Mutex // guards words
	words []string   // that are no log lines of a worker
}

// startFar starts a host on a node. The caller must run listen, and give the order when it has heard a hello.
func startFar(f fanout, node string) (*child, error) {
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
	cmd := &exec.Cmd{Path: path, Args: argv, Stdin: theirs, Stdout: theirs, Stderr: printed, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if err := cmd.Start(); err != nil {
		ours.Close()
		stderr.Close()
		return nil, err
	}
	c := &child{pid: cmd.Process.Pid, conn: ours, enc: json.NewEncoder(ours), far: &far{way: f.way, node: node, stderr: stderr, read: make(chan struct{})}}
	_ = cmd.Process.Release()        // reap waits for it
	_, _ = ours.Write([]byte(first)) // it fits; and what ends at once has its status
	return c, nil
}

// listen passes on what is printed to the job's log.
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

// remember keeps what srun or ssh, or the node's shell, say themselves.
func (f *far) remember(line string) {
	if line == "" || strings.HasPrefix(line, "time=") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.words = append(f.words[max(0, len(f.words)-4):], line)
}

// obituary says how the way to a host ended of which there was no last word.
func (f *far) obituary(status syscall.WaitStatus) string {
	how := fmt.Sprintf("%s ended with status %d", f.way, status.ExitStatus())
	if status.Signaled() {
		how = fmt.Sprintf("%s died of signal %d (%s)", f.way, status.Signal(), status.Signal())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	words := strings.Join(f.words, "; ")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "")
	}
	if words == "" {
		return how
	}
	return how + ": " + words
}

// skipTo reads up to and with a line, or to the end.
func skipTo(in *bufio.Reader, line string) {
	for {
		got, err := in.ReadSlice('\n')
		if string(bytes.TrimSpace(got)) == line || err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// hearHost takes in what only a host says.
func (s *supervisor) hearHost(w *worker, said word) {
	switch {
	case said.Hello != nil:
		s.greet(w, *said.Hello)
	case said.Note != "":
		s.note("worker %s on node %s: %s", w.id, w.node, said.Note)
	case said.CallBack != nil:
		by, q, ask := w.child, *said.CallBack, broker.CallBack(notAtSchedd)
		if s.link != nil {
			ask = s.link.CallBack
		}
		s.saying.Go(func() {
			a := answerTo(q, ask)
			select {
			case s.answers <- answered{by, a}:
			case <-s.done:
			}
		})
	}
}

// answered is what corrald answered to a host.
type answered struct {
	to     *child
	answer calledBack
}

// greet gives a host its order, unless its clock is wrong.
func (s *supervisor) greet(w *worker, h hello) {
	now := time.Now()
	ours := now
	if s.link != nil {
		ours = now.Add(s.link.ClockOffset())
	}
	order, err := s.hostOrder(w, now)
	if bad := node.CheckClock(ours.Sub(h.Now)); bad != nil {
		err = bad
	}
	if err != nil {
		w.child.last = word{Left: leftUnable, Error: err.Error()}
		w.tell(ask{Leave: true})
		return
	}
	s.note("worker %s: node %s is %s, process %d", w.id, w.node, h.Host, h.PID)
	w.tell(ask{Host: &order})
	if s.going != nil {
		w.tell(ask{Drain: s.going.killAt.IsZero(), Leave: !s.going.killAt.IsZero()})
	}
}

// hostOrder is what another node needs to know for a worker.
func (s *supervisor) hostOrder(w *worker, now time.Time) (hostOrder, error) {
	o, err := s.workerOrder(w, now)
	return hostOrder{workerOrder: o, Dir: s.dir, Linked: s.link != nil && s.joining != nil && !s.order.Condor.Attached,
		HungAfter: s.hungAfter(), Env: carried()}, err
}

// beat lets hosts hear that we are there.
func (s *supervisor) beat(now time.Time) {
	for _, w := range s.workers {
		if c := w.child; c != nil && c.far != nil && !c.ended && now.Sub(c.far.beatAt) >= wordGap {
			c.far.beatAt = now
			c.tell(ask{})
		}
	}
}
