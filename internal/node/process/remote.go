package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	farStart   = 2 * time.Minute        // for srun or ssh to start a host
	farSilence = 30 * time.Second       // a host that is silent for this long is lost or disconnected
	farPrinted = 500 * time.Millisecond // for reading the last output of srun or ssh
	maxPrinted = 300                    // bytes of that output in an obituary
	lastLines  = 5                      // of that output that are kept
)

// far extends a child whose other end is a host on another node. Login shells, prologues and srun itself print to both
// streams: on stdout all text before mark is skipped. stderr is copied to the job's log, and its last lines are the
// only explanation if the connection to the host breaks.
type far struct {
	way, node string
	beatAt    time.Time     // time of the last message
	stderr    *os.File      // of srun or ssh, and of the host
	read      chan struct{} // closed when all of stderr has been read

	mu    sync.Mutex // guards lines
	lines []string   // the last lines of stderr that are not from a worker's log
}

// startFar starts a host on a node. The caller must run both listen methods, and send the order after the Hello.
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
	c, err := launch(func(theirs *os.File) *exec.Cmd {
		return &exec.Cmd{Path: path, Args: argv, Stdin: theirs, Stdout: theirs, Stderr: printed}
	})
	if err != nil {
		stderr.Close()
		return nil, err
	}
	c.far = &far{way: f.way, node: node, stderr: stderr, read: make(chan struct{})}
	_, _ = c.conn.Write([]byte(first)) // it fits into the buffer; a process that has already ended has a status
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

// remember keeps a line that srun, ssh or the node's shell printed. It ignores the lines of a host's log, which begin
// with a time.
func (f *far) remember(line string) {
	if line == "" || strings.HasPrefix(line, "time=") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines[max(0, len(f.lines)-lastLines+1):], line)
}

// obituary describes the end of a connection to a host that sent no last word.
func (f *far) obituary(status syscall.WaitStatus) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	how, printed := f.way+" "+Ending(status), strings.Join(f.lines, "; ")
	if printed == "" {
		return how
	}
	return how + ": " + strings.ToValidUTF8(printed[:min(len(printed), maxPrinted)], "")
}

// awaitPrinted waits until the whole output of srun or ssh has been read, but not for long: another process may hold
// the pipe open.
func (c *Child) awaitPrinted(done <-chan struct{}) {
	if c.far == nil {
		return
	}
	select {
	case <-c.far.read:
	case <-time.After(farPrinted):
	case <-done:
	}
}

// skipTo reads up to the end of a given line, or to the end of in.
func skipTo(in *bufio.Reader, line string) {
	for {
		got, err := in.ReadSlice('\n')
		if string(bytes.TrimSpace(got)) == line || err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// HostCommand is the argument with which srun or ssh starts this program on another node of the job.
const HostCommand = "host"

// Variables that the batch system's dialect sets: the job's nodes, with the first node first, and the program that
// starts processes on the other nodes.
const (
	nodesVariable  = "CORRAL_NODES"  // names separated by blanks
	fanoutVariable = "CORRAL_FANOUT" // srun or ssh
)

// A Fanout starts this program on the other nodes of the batch job. No text from a user or a site is part of a line
// that a shell reads: srun receives an argument vector, and ssh one constant line (overSSH).
type Fanout struct {
	Nodes   []string // of the job, this one first; fewer than two: there are no other nodes
	way     string   // srun or ssh
	program string   // this program, by a path visible on every node
	overlap bool     // srun needs --overlap, which versions before 20.11 do not support
	cpus    int      // of each node
}

// nodeName matches valid names of nodes. Other names are never used in a command line.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// FindFanout reads the job's nodes, as set by the batch system, from the environment, and uses only the first nodes, at
// most as many as hosts. It may run a command, so it must be called before any code in this process reaps children.
func FindFanout(getenv func(string) string, hosts, cpus int) (Fanout, error) {
	f := Fanout{Nodes: strings.Fields(getenv(nodesVariable)), way: getenv(fanoutVariable), cpus: cpus}
	if len(f.Nodes) > hosts {
		f.Nodes = f.Nodes[:hosts]
	}
	if len(f.Nodes) < 2 {
		return f, nil
	}
	for _, node := range f.Nodes {
		if !nodeName.MatchString(node) {
			return f, fmt.Errorf("%s: %.60q is not the name of a node", nodesVariable, node)
		}
	}
	self, err := os.Executable()
	f.program = strings.TrimSuffix(self, " (deleted)")
	if f.way == "srun" { // without srun, starting a host will report the error
		help, _ := exec.Command("srun", "--help").Output()
		f.overlap = strings.Contains(string(help), "--overlap")
	} else if f.way != "ssh" {
		return f, fmt.Errorf("%s=%.60q: want srun or ssh", fanoutVariable, f.way)
	}
	return f, err
}

// overSSH makes any login shell execute the program whose path is the first line of stdin, so that the path need not be
// quoted.
const overSSH = `exec /bin/sh -c 'IFS= read -r program && exec "$program" ` + HostCommand + `'`

// command returns the arguments that start this program as a host on a node, and the text to write to its stdin first.
func (f Fanout) command(node string) (argv []string, first string) {
	if f.way == "ssh" {
		return []string{"ssh", "-T", "-S", "none", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes",
			"-o", "ForwardAgent=no", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=10",
			"-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR", "--", node, overSSH}, f.program + "\n"
	}
	argv = []string{"srun", "--quiet", "--nodes=1", "--ntasks=1", "--nodelist=" + node,
		"--cpus-per-task=" + strconv.Itoa(f.cpus), "--mpi=none", "--export=ALL"}
	if f.overlap {
		argv = append(argv, "--overlap")
	}
	return append(argv, f.program, HostCommand), ""
}
