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
	farSilence = 30 * time.Second       // without a word for so long, a host or the way to it is lost
	farPrinted = 500 * time.Millisecond // for the last of what srun or ssh printed to be read
	maxPrinted = 300                    // bytes of that which an obituary repeats
	lastLines  = 5                      // of it that are remembered
)

// far is what a child has besides a process if a host on another node is at its other end. Login shells, prologues and
// srun itself print on both streams: on stdout everything before mark is skipped, and what comes on stderr goes to
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
	c, err := launch(func(theirs *os.File) *exec.Cmd {
		return &exec.Cmd{Path: path, Args: argv, Stdin: theirs, Stdout: theirs, Stderr: printed}
	})
	if err != nil {
		stderr.Close()
		return nil, err
	}
	c.far = &far{way: f.way, node: node, stderr: stderr, read: make(chan struct{})}
	_, _ = c.conn.Write([]byte(first)) // it fits; a process that has already ended leaves its status
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
	how, printed := f.way+" "+Ending(status), strings.Join(f.lines, "; ")
	if printed == "" {
		return how
	}
	return how + ": " + strings.ToValidUTF8(printed[:min(len(printed), maxPrinted)], "")
}

// awaitPrinted waits until everything that srun or ssh printed has been read, but not for long: another process may
// hold the pipe open.
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

// skipTo reads up to a line and the end of it, or to the end of in.
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

// How the batch system's dialect tells a job on which nodes it runs, the first node first, and what starts a program on
// the others.
const (
	nodesVariable  = "CORRAL_NODES"  // names with blanks between
	fanoutVariable = "CORRAL_FANOUT" // srun or ssh
)

// A Fanout starts this program on the other nodes of the batch job. Nothing that a user or a site chose is in a line
// that a shell reads: srun takes an argument vector, and ssh gets one constant line (overSSH).
type Fanout struct {
	Nodes   []string // of the job, this one first; fewer than two: there are no others
	way     string   // srun or ssh
	program string   // this one, by a path that every node must see
	overlap bool     // srun needs --overlap, which versions before 20.11 do not know
	cpus    int      // of each node
}

// nodeName is what a batch system may call a node. Other names get nowhere near a command line.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// FindFanout reads from the environment what the batch system says of the job's nodes, and takes the first hosts of
// them. It may run a command, so it must be called before anything in this process reaps.
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
	if f.way == "srun" { // without one no other node can serve; the attempt to start a host there says so
		help, _ := exec.Command("srun", "--help").Output()
		f.overlap = strings.Contains(string(help), "--overlap")
	} else if f.way != "ssh" {
		return f, fmt.Errorf("%s=%.60q: want srun or ssh", fanoutVariable, f.way)
	}
	return f, err
}

// overSSH makes a login shell of any kind become the program whose path is the first line of stdin, so that no path
// needs to be quoted.
const overSSH = `exec /bin/sh -c 'IFS= read -r program && exec "$program" ` + HostCommand + `'`

// command is what starts this program as a host on a node, and what its stdin must begin with.
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
