package slurm

// sinfo shows the cluster as the only partition, and its workers as nodes. A worker is a node, even if several workers
// share a machine: it is the environment of a job.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// nodeState returns a node's state, and the short form of most of sinfo's columns.
func nodeState(w corral.Worker) (full, short string) {
	switch busy := w.CPUs - w.CPUsFree; {
	case w.Draining && busy > 0:
		return "draining", "drng"
	case w.Draining:
		return "drained", "drain"
	case busy >= w.CPUs:
		return "allocated", "alloc"
	case busy > 0:
		return "mixed", "mix"
	}
	return "idle", "idle"
}

// A group is a line of sinfo's output: nodes with the same values in all columns that describe single nodes.
type group struct {
	partition string
	nodes     []corral.Worker
}

// first returns a node of the group, whose nodes all have the same values; for a partition without nodes it returns an
// empty Worker.
func (g *group) first() corral.Worker {
	if len(g.nodes) == 0 {
		return corral.Worker{}
	}
	return g.nodes[0]
}

// counts returns sums over the nodes of a group: the nodes on which a task runs, those without a task, and those whose
// pilot is leaving; likewise with CPUs.
func (g *group) counts() (nodes, cpus [3]int) {
	const allocated, idle, other = 0, 1, 2
	for _, w := range g.nodes {
		busy, rest := w.CPUs-w.CPUsFree, idle
		if w.Draining {
			rest = other
		}
		if busy > 0 && !w.Draining {
			nodes[allocated]++
		} else {
			nodes[rest]++
		}
		cpus[allocated] += busy
		cpus[rest] += w.CPUsFree
	}
	return nodes, cpus
}

// fourfold formats counts and their sum.
func fourfold(n [3]int) string { return fmt.Sprintf("%d/%d/%d/%d", n[0], n[1], n[2], n[0]+n[1]+n[2]) }

// names lists the nodes, separated by commas: workers' names have no common pattern of numbers, unlike Slurm's nodes.
func (g *group) names() string {
	var names []string
	for _, w := range g.nodes {
		names = append(names, node(w.ID))
	}
	return strings.Join(names, ",")
}

// state returns the state of the nodes, in the full or the short form.
func (g *group) state(full bool) string {
	long, short := nodeState(g.first())
	switch {
	case len(g.nodes) == 0:
		return "n/a"
	case full:
		return long
	}
	return short
}

func (g *group) cpus() string { return strconv.Itoa(g.first().CPUs) }

// sumLetters are the letters of columns whose values are sums over the nodes of a line. Nodes that differ only in such
// columns share a line.
const sumLetters = "ACDFN"

// sinfoColumns are the columns of sinfo.
var sinfoColumns = []column[*group]{
	varied('A', "NODES(A/I)", func(g *group) string {
		nodes, _ := g.counts()
		return fmt.Sprintf("%d/%d", nodes[0], nodes[1])
	}),
	varied('c', "CPUS", (*group).cpus),
	varied('C', "CPUS(A/I/O/T)", func(g *group) string { _, cpus := g.counts(); return fourfold(cpus) }),
	varied('D', "NODES", func(g *group) string { return strconv.Itoa(len(g.nodes)) }),
	varied('F', "NODES(A/I/O/T)", func(g *group) string { nodes, _ := g.counts(); return fourfold(nodes) }),
	varied('G', "GRES", func(g *group) string {
		if n := g.first().GPUs; n > 0 {
			return fmt.Sprintf("gpu:%d", n)
		}
		return null
	}),
	varied('m', "MEMORY", func(g *group) string { return strconv.Itoa(g.first().MemoryMiB) }),
	varied('n', "HOSTNAMES", func(g *group) string { return node(g.first().ID) }),
	varied('N', "NODELIST", (*group).names),
	// The asterisk marks the default partition, because it is the only partition.
	varied('P', "PARTITION", func(g *group) string { return g.partition + "*" }),
	varied('R', "PARTITION", func(g *group) string { return g.partition }),
	varied('t', "STATE", func(g *group) string { return g.state(false) }),
	varied('T', "STATE", func(g *group) string { return g.state(true) }),
	varied('Y', "CORES", (*group).cpus),
	varied('z', "S:C:T", func(g *group) string { return "1:" + g.cpus() + ":1" }), // a worker is a single socket
	// The cluster is up, otherwise sinfo receives no answer. Workers do not report their disk space. The size of
	// a job is its number of nodes.
	uniform('a', "AVAIL", "up"), uniform('B', "MAX_CPUS_PER_NODE", "UNLIMITED"), uniform('d', "TMP_DISK", "0"),
	uniform('E', "REASON", "none"), uniform('f', "AVAIL_FEATURES", null), uniform('g', "GROUPS", "all"),
	uniform('h', "OVERSUBSCRIBE", "NO"), uniform('l', "TIMELIMIT", "infinite"), uniform('L', "DEFAULTTIME", "n/a"),
	uniform('p', "PRIO_TIER", "1"), uniform('r', "ROOT", "no"), uniform('s', "JOB_SIZE", "1-infinite"),
	uniform('S', "ALLOCNODES", "all"), uniform('w', "WEIGHT", "1"), uniform('X', "SOCKETS", "1"),
	uniform('Z', "THREADS", "1"),
}

// varied returns a column with a value for each group, and uniform one with the same value for all groups.
func varied(letter byte, header string, value func(*group) string) column[*group] {
	return lettered(letter, "", header, value)
}

func uniform(letter byte, header, value string) column[*group] {
	return varied(letter, header, same[*group](value))
}

// Default formats of sinfo.
const (
	infoFormat    = "%9P %.5a %.10l %.6D %.6t %N"
	infoLong      = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	infoNodes     = "%#N %.6D %#P %6t"
	infoNodesLong = "%#N %.6D %#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	infoSummary   = "%9P %.5a %.10l %.16F %N"
)

// sinfoOptions are the options of sinfo.
var sinfoOptions = notation.Command[query]{Name: "sinfo", Options: []option{
	{Names: "noheader|h", Set: noHeader},
	{Names: "long|l", Set: long},
	{Names: "clusters|M= cluster=", Set: clusters},
	{Names: "nodes|n=", Set: func(q *query, g notation.Given) (err error) {
		q.nodes, err = notation.Hosts(g.Value)
		return err
	}},
	{Names: "Node|N", Set: notation.On(func(q *query) *bool { return &q.eachNode })},
	{Names: "format|o=", Set: columns},
	{Names: "partition|p=", Set: partitions},
	{Names: "summarize|s", Set: notation.On(func(q *query) *bool { return &q.summary })},
	{Names: "version|V help usage", Set: other},
	{Names: "all|a exact|e federation hide local noconvert responding|r sort|S= verbose|v"},
	{Names: "dead|d iterate|i= json Format|O= list-reasons|R states|t= reservation|T yaml", Set: noInfo},
}}

var noInfo = notation.Refuse[query]("sinfo shows workers once, in the columns of -o")

// parseSinfo parses a command line of sinfo, without its name; defaults are read from the environment.
func parseSinfo(words []string, getenv func(string) string) (*query, error) {
	q := &query{}
	err := q.parse(sinfoOptions, words, "Unrecognized option:") // Slurm's wording
	switch {
	case err != nil:
		return nil, err
	case q.columns != "":
	case q.eachNode && q.long:
		q.columns = infoNodesLong
	case q.eachNode:
		q.columns = infoNodes
	case q.summary:
		q.columns = infoSummary
	case q.long:
		q.columns = infoLong
	default:
		q.columns = cmp.Or(getenv("SINFO_FORMAT"), infoFormat)
	}
	q.nodeLines, err = byLetters(q.columns, ".#", "node", sinfoColumns)
	return q, err
}

// writeInfo prints the selected nodes of a partition.
func (q *query) writeInfo(w io.Writer, title, partition string, workers []corral.Worker, now time.Time) error {
	lines := q.nodeLines
	lines.places = slices.Clone(lines.places) // its widths are set below
	var groups []*group
	if len(q.partitions) == 0 || slices.Contains(q.partitions, partition) {
		groups = q.groups(partition, workers)
	}
	for i := range lines.places {
		p := &lines.places[i]
		if !p.fits {
			continue
		}
		p.size, p.right = len(p.header), p.letter == 'P'
		for _, g := range groups {
			p.size = max(p.size, len(p.value(g)))
		}
		if p.letter == 'N' {
			p.size++ // like Slurm
		}
	}
	return lines.write(w, q, title, groups, now)
}

// groups combines nodes of a partition that have the same values. A partition without nodes also has a line.
func (q *query) groups(partition string, workers []corral.Worker) (list []*group) {
	looks := map[string]*group{}
	for _, w := range workers {
		if len(q.nodes) > 0 && !slices.Contains(q.nodes, node(w.ID)) {
			continue
		}
		one := &group{partition, []corral.Worker{w}}
		look := node(w.ID)
		if !q.eachNode {
			look = ""
			for _, p := range q.nodeLines.places { // the values that distinguish nodes
				if strings.IndexByte(sumLetters, p.letter) < 0 {
					look += p.value(one) + "\x00"
				}
			}
		}
		if looks[look] != nil {
			looks[look].nodes = append(looks[look].nodes, w)
			continue
		}
		looks[look] = one
		list = append(list, one)
	}
	if len(list) == 0 && len(q.nodes) == 0 && !q.eachNode {
		list = append(list, &group{partition: partition})
	}
	return list
}

// sinfo shows the cluster's workers.
func sinfo(c *call) error {
	q, err := parseSinfo(c.args, os.Getenv)
	if err != nil {
		return err
	}
	if q.other != "" {
		return c.tellOther(q.other)
	}
	if err := openOf(c, q.clusters); err != nil {
		return err
	}
	workers, err := c.workers()
	if err != nil {
		return err
	}
	return q.writeInfo(c.Out, c.title, c.folder.Cluster, workers, time.Now())
}
