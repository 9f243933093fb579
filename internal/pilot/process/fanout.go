package process

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

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
	switch f.way {
	case "srun":
		// Without srun no other node can serve; the attempt to start one there says so.
		help, _ := exec.Command("srun", "--help").Output()
		f.overlap = strings.Contains(string(help), "--overlap")
		return f, err
	case "ssh":
		return f, err
	}
	return f, fmt.Errorf("%s=%.60q: want srun or ssh", fanoutVariable, f.way)
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
