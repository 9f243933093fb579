package pilot

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// How a batch job says on which nodes it runs, this one first, and what starts a program on another.
const (
	nodesVariable  = "CORRAL_NODES"  // names with blanks between
	fanoutVariable = "CORRAL_FANOUT" // srun or ssh
)

// A fanout starts this program on the other nodes of the batch job.
type fanout struct {
	nodes   []string // of the job, this one first; none: there are no others
	way     string   // srun or ssh
	program string   // this one, by a path that every node is to know
	overlap bool     // srun needs --overlap, which versions before 20.11 do not know
	cpus    int      // of each node
}

// nodeName is what a batch system may call a node. No other name comes near a command line.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// findNodes reads what the batch system says of the job's nodes. It may run a command, so it is called before this
// process reaps.
func findNodes(getenv func(string) string, hosts, cpus int) (fanout, error) {
	f := fanout{nodes: strings.Fields(getenv(nodesVariable)), way: getenv(fanoutVariable), cpus: cpus}
	if len(f.nodes) > hosts {
		f.nodes = f.nodes[:hosts]
	}
	if len(f.nodes) < 2 {
		return f, nil
	}
	for _, node := range f.nodes {
		if !nodeName.MatchString(node) {
			return f, fmt.Errorf("%s: %.60q is not the name of a node", nodesVariable, node)
		}
	}
	self, err := os.Executable()
	f.program = strings.TrimSuffix(self, " (deleted)")
	switch f.way {
	case "srun":
		help, _ := exec.Command("srun", "--help").Output() // without srun no other node serves, and the reason is told then
		f.overlap = strings.Contains(string(help), "--overlap")
		return f, err
	case "ssh":
		return f, err
	}
	return f, fmt.Errorf("%s=%.60q: want srun or ssh", fanoutVariable, f.way)
}

// others reports whether there are other nodes than this one.
func (f fanout) others() bool { return len(f.nodes) > 1 }

// node returns which node is to run worker i; empty: this one.
func (f fanout) node(i int) string {
	if i == 0 || !f.others() {
		return ""
	}
	return f.nodes[i]
}

// overSSH has a login shell of any kind become the program whose path comes first on stdin, so that no path needs to be
// quoted.
const overSSH = `exec /bin/sh -c 'IFS= read -r program && exec "$program" ` + HostCommand + `'`

// command is what starts this program as a host on a node, and what its stdin must begin with.
func (f fanout) command(node string) (argv []string, first string) {
	if f.way == "ssh" {
		return []string{"ssh", "-T", "-S", "none", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o", "ForwardAgent=no",
			"-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR",
			"--", node, overSSH}, f.program + "\n"
	}
	argv = []string{"srun", "--quiet", "--nodes=1", "--ntasks=1", "--nodelist=" + node, "--cpus-per-task=" + strconv.Itoa(f.cpus),
		"--mpi=none", "--export=ALL"}
	if f.overlap {
		argv = append(argv, "--overlap")
	}
	return append(argv, f.program, HostCommand), ""
}

// here names this node as the batch system does, if it does: others can be told to avoid it by that name only.
func (f fanout) here() string {
	if len(f.nodes) > 0 {
		return f.nodes[0]
	}
	return hostName()
}
