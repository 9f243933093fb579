package job

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A Partition is a partition as shown by sinfo: a cluster, with its workers as nodes.
type Partition struct {
	Name      string
	TimeLimit time.Duration // 0: none
	Nodes     []Node
}

// A Node is a worker.
type Node struct {
	Name      string
	CPUs      int
	Busy      int // CPUs
	MemoryMiB int64
	GPUs      int
	Leaving   bool // it accepts no more jobs
}

// state returns idle, mixed, allocated, draining or drained.
func (n Node) state() string {
	switch {
	case n.Leaving && n.Busy > 0:
		return "draining"
	case n.Leaving:
		return "drained"
	case n.Busy >= n.CPUs:
		return "allocated"
	case n.Busy > 0:
		return "mixed"
	}
	return "idle"
}

// compact returns the state in the short form of most of sinfo's columns.
func (n Node) compact() string {
	switch state := n.state(); state {
	case "mixed":
		return "mix"
	case "allocated":
		return "alloc"
	case "draining":
		return "drng"
	case "drained":
		return "drain"
	default:
		return state
	}
}

// A group is a line of sinfo's output: nodes of a partition with the same values in all columns that describe single
// nodes.
type group struct {
	*Partition
	nodes []Node
}

// first returns a node of the group, whose nodes all have the same values; for a partition without nodes it returns an
// empty Node.
func (g *group) first() Node {
	if len(g.nodes) == 0 {
		return Node{}
	}
	return g.nodes[0]
}

// count returns the sums of the numbers that of returns for each node: busy, idle and other.
func (g *group) count(of func(Node) (busy, idle, other int)) (busy, idle, other int) {
	for _, n := range g.nodes {
		b, i, o := of(n)
		busy, idle, other = busy+b, idle+i, other+o
	}
	return busy, idle, other
}

// nodesOf counts a node once: as busy if a task runs there, or as other if its pilot is leaving.
func nodesOf(n Node) (busy, idle, other int) {
	switch {
	case n.Leaving:
		return 0, 0, 1
	case n.Busy > 0:
		return 1, 0, 0
	}
	return 0, 1, 0
}

func cpusOf(n Node) (busy, idle, other int) {
	if n.Leaving {
		return n.Busy, 0, n.CPUs - n.Busy
	}
	return n.Busy, n.CPUs - n.Busy, 0
}

// An infoColumn is a column of sinfo. Nodes that differ only in columns with sums share a line.
type infoColumn struct {
	letter byte // in -o
	name   string
	header string
	sums   bool // the value is a sum over the nodes of a line
	value  func(*group) string
}

// same returns the value of a column that is the same for every partition.
func same(text string) func(*group) string { return func(*group) string { return text } }

// infoColumns are the columns of sinfo.
var infoColumns = []infoColumn{
	// If the cluster is down, sinfo receives no answer and shows no partition.
	{'a', "available", "AVAIL", false, same("up")},
	{'A', "nodeai", "NODES(A/I)", true, func(g *group) string {
		busy, idle, _ := g.count(nodesOf)
		return fmt.Sprintf("%d/%d", busy, idle)
	}},
	{'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", false, same("UNLIMITED")},
	{'c', "cpus", "CPUS", false, func(g *group) string { return strconv.Itoa(g.first().CPUs) }},
	{'C', "cpusstate", "CPUS(A/I/O/T)", true, func(g *group) string { return fourfold(g.count(cpusOf)) }},
	// Workers do not report their disk space.
	{'d', "disk", "TMP_DISK", false, same("0")},
	{'D', "nodes", "NODES", true, func(g *group) string { return strconv.Itoa(len(g.nodes)) }},
	{'E', "reason", "REASON", false, same("none")},
	{'f', "features", "AVAIL_FEATURES", false, same(null)},
	{'F', "nodeaiot", "NODES(A/I/O/T)", true, func(g *group) string { return fourfold(g.count(nodesOf)) }},
	{'g', "groups", "GROUPS", false, same("all")},
	{'G', "gres", "GRES", false, func(g *group) string {
		if n := g.first().GPUs; n > 0 {
			return fmt.Sprintf("gpu:%d", n)
		}
		return null
	}},
	{'h', "oversubscribe", "OVERSUBSCRIBE", false, same("NO")},
	{'l', "time", "TIMELIMIT", false, (*group).limit},
	{'L', "defaulttime", "DEFAULTTIME", false, same("n/a")},
	{'m', "memory", "MEMORY", false, func(g *group) string { return strconv.FormatInt(g.first().MemoryMiB, 10) }},
	{'n', "nodehost", "HOSTNAMES", false, func(g *group) string { return g.first().Name }},
	{'N', "nodelist", "NODELIST", true, func(g *group) string { return g.names() }},
	{'p', "prioritytier", "PRIO_TIER", false, same("1")},
	// The asterisk marks the default partition, because it is the only partition.
	{'P', "partition", "PARTITION", false, func(g *group) string { return g.Name + "*" }},
	{'r', "root", "ROOT", false, same("no")},
	// This column shows the name without the asterisk.
	{'R', "partitionname", "PARTITION", false, func(g *group) string { return g.Name }},
	// The size of a job is its number of nodes.
	{'s', "size", "JOB_SIZE", false, same("1-infinite")},
	{'S', "allocnodes", "ALLOCNODES", false, same("all")},
	{'t', "statecompact", "STATE", false, func(g *group) string { return g.compact() }},
	{'T', "statelong", "STATE", false, func(g *group) string { return g.state() }},
	{'w', "weight", "WEIGHT", false, same("1")},
	{'X', "sockets", "SOCKETS", false, same("1")},
	{'Y', "cores", "CORES", false, func(g *group) string { return strconv.Itoa(g.first().CPUs) }},
	// A worker is shown as a single socket.
	{'z', "socketcorethread", "S:C:T", false, func(g *group) string { return fmt.Sprintf("1:%d:1", g.first().CPUs) }},
	{'Z', "threads", "THREADS", false, same("1")},
}

func fourfold(busy, idle, other int) string {
	return fmt.Sprintf("%d/%d/%d/%d", busy, idle, other, busy+idle+other)
}

// names lists the nodes, separated by commas: workers' names have no common pattern of numbers, unlike Slurm's nodes.
func (g *group) names() string {
	var names []string
	for _, n := range g.nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ",")
}

func (g *group) limit() string {
	if g.TimeLimit == 0 {
		return "infinite"
	}
	return notation.Clock(g.TimeLimit)
}

func (g *group) state() string {
	if len(g.nodes) == 0 {
		return "n/a"
	}
	return g.first().state()
}

func (g *group) compact() string {
	if len(g.nodes) == 0 {
		return "n/a"
	}
	return g.first().compact()
}

// Default formats of sinfo.
const (
	infoFormat    = "%9P %.5a %.10l %.6D %.6t %N"
	infoLong      = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	infoNodes     = "%#N %.6D %#P %6t"
	infoNodesLong = "%#N %.6D %#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	infoSummary   = "%9P %.5a %.10l %.16F %N"
)

// An Info is a parsed call of sinfo.
type Info struct {
	listing
	format     []place[infoColumn]
	after      string
	eachNode   bool // -N
	summary    bool // -s
	partitions []string
	nodes      []string // -n
	Clusters   string   // -M, a list
	Title      string   // the cluster, if one was named; empty: none
}

var sinfo = &command{
	Getopt: notation.Getopt{Command: "sinfo", Options: notation.Options(
		"all|a dead|d exact|e federation noheader|h hide iterate|i= json local long|l clusters|M= cluster= nodes|n= " +
			"noconvert Node|N format|o= Format|O= partition|p= responding|r list-reasons|R summarize|s sort|S= " +
			"states|t= reservation|T verbose|v version|V yaml help usage")},
	stray:   "Unrecognized option:", // Slurm's wording
	refused: "Format iterate json yaml list-reasons reservation states dead",
	why:     "sinfo shows workers once, in the columns of -o",
}

// ParseInfo parses a command line of sinfo, without its name; defaults are read from the environment.
func ParseInfo(words []string, getenv func(string) string) (*Info, error) {
	o, format := &Info{}, ""
	err := o.read(sinfo, words, func(g notation.Given) (err error) {
		switch g.Name {
		case "Node":
			o.eachNode = true
		case "summarize":
			o.summary = true
		case "format":
			format = g.Value
		case "clusters", "cluster":
			o.Clusters = g.Value
		case "partition":
			o.partitions = strings.Split(g.Value, ",")
		case "nodes":
			o.nodes, err = notation.Hosts(g.Value)
		}
		return err
	})
	if err == nil {
		letterOf := func(c *infoColumn) byte { return c.letter }
		format = cmp.Or(format, o.standard(getenv))
		o.format, o.after, err = parseFormat(format, ".#", "node", infoColumns, letterOf)
	}
	return o, err
}

// standard returns the default format.
func (o *Info) standard(getenv func(string) string) string {
	switch {
	case o.eachNode && o.long:
		return infoNodesLong
	case o.eachNode:
		return infoNodes
	case o.summary:
		return infoSummary
	case o.long:
		return infoLong
	}
	return cmp.Or(getenv("SINFO_FORMAT"), infoFormat)
}

// Write prints the selected partitions.
func (o *Info) Write(w io.Writer, partitions []Partition, now time.Time) error {
	var groups []*group
	for i := range partitions {
		p := &partitions[i]
		if len(o.partitions) == 0 || slices.Contains(o.partitions, p.Name) {
			groups = append(groups, o.groups(p)...)
		}
	}
	format := slices.Clone(o.format)
	for i, p := range format {
		if p.fits {
			format[i].width, format[i].right = len(p.column.header), p.column.letter == 'P'
			for _, g := range groups {
				format[i].width = max(format[i].width, len(p.column.value(g)))
			}
			if p.column.letter == 'N' {
				format[i].width++ // like Slurm
			}
		}
	}
	var b strings.Builder
	line := func(value func(*infoColumn) string) {
		for _, p := range format {
			b.WriteString(p.before + cell(value(p.column), p.width, p.right))
		}
		b.WriteString(o.after + "\n")
	}
	b.WriteString(titled(o.Title, o.noHeader))
	o.top(&b, now)
	if !o.noHeader {
		line(func(c *infoColumn) string { return c.header })
	}
	for _, g := range groups {
		line(func(c *infoColumn) string { return c.value(g) })
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// groups combines nodes of a partition that have the same values. A partition without nodes also has a line.
func (o *Info) groups(p *Partition) []*group {
	var list []*group
	looks := map[string]*group{}
	for _, n := range p.Nodes {
		if len(o.nodes) > 0 && !slices.Contains(o.nodes, n.Name) {
			continue
		}
		one := &group{p, []Node{n}}
		look := n.Name
		if !o.eachNode {
			look = o.look(one)
		}
		if looks[look] == nil {
			looks[look] = one
			list = append(list, one)
			continue
		}
		looks[look].nodes = append(looks[look].nodes, n)
	}
	if len(list) == 0 && len(o.nodes) == 0 && !o.eachNode {
		list = append(list, &group{Partition: p})
	}
	return list
}

// look returns the values that distinguish nodes: those of all columns that are not sums.
func (o *Info) look(g *group) string {
	var b strings.Builder
	for _, p := range o.format {
		if !p.column.sums {
			b.WriteString(p.column.value(g) + "\x00")
		}
	}
	return b.String()
}
