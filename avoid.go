package corral

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// AvoidAfter is how many attempts in a row must have had no use of a node.
	AvoidAfter = 3

	// AvoidFor is how long after the last of them the node is avoided: somebody may have mended it.
	AvoidFor = 24 * time.Hour

	avoidMost = 32 // nodes at once: a batch system's command line is not endless
)

// A BadNode is a node of a site that new attempts avoid, where the batch system can do that.
type BadNode struct {
	Node     string
	Failures int
	Last     time.Time
	Why      string // the last one's reason
}

func (b BadNode) String() string {
	return fmt.Sprintf("%s (%d attempts in a row failed on it, the last at %s: %s)", b.Node, b.Failures, b.Last.UTC().Format(time.RFC3339), b.Why)
}

// BadNodes returns the nodes of a site of which one attempt after the other had no use, and on which no worker has come to
// life since; what failed last first. attempts are those that lost hosts; worked says when a worker was seen last, by host;
// nodes is how many there are where the next attempt may go, 0 if that is not known, of which it wants hosts. At most half
// of the nodes are avoided, and enough are left: where most nodes are bad, something else is, and to name them all would
// keep an attempt in the queue for ever. For the same reason an attempt says nothing of its nodes if it lost several and
// no worker of it ever lived.
func BadNodes(attempts []Job, worked map[string]time.Time, nodes, hosts int, now time.Time) []BadNode {
	lived := map[string]time.Time{} // :: short name → when a worker was seen there
	for host, at := range worked {
		if short := shortName(host); at.After(lived[short]) {
			lived[short] = at
		}
	}
	seen := map[string]bool{}
	for short := range lived {
		seen[short] = true
	}
	failed := map[string]BadNode{}
	for _, j := range attempts {
		if j.Workers == 0 && len(j.Lost) > 1 {
			continue
		}
		for _, l := range j.Lost {
			short := shortName(l.Node)
			if short == "" {
				continue
			}
			seen[short] = true
			if b := failed[short]; now.Sub(l.At) < AvoidFor && l.At.After(lived[short]) {
				b.Failures++
				if !l.At.Before(b.Last) {
					b.Node, b.Last, b.Why = l.Node, l.At, l.Why
				}
				failed[short] = b
			}
		}
	}
	var bad []BadNode
	for _, b := range failed {
		if b.Failures >= AvoidAfter {
			bad = append(bad, b)
		}
	}
	slices.SortFunc(bad, func(a, b BadNode) int {
		if !a.Last.Equal(b.Last) {
			return b.Last.Compare(a.Last)
		}
		return strings.Compare(a.Node, b.Node)
	})
	nodes = cmp.Or(nodes, len(seen))
	return bad[:max(0, min(len(bad), nodes/2, nodes-hosts, avoidMost))]
}

// A LostHost is a host of an attempt that has no worker any more, or never had one. The others go on.
type LostHost struct {
	Host int       `json:"host"`           // its number: 0 is on the batch job's first node
	Node string    `json:"node,omitempty"` // as the batch system calls it; empty: it is not for the node
	Why  string    `json:"reason"`
	At   time.Time `json:"at,omitzero"`
}

func (l LostHost) String() string {
	if l.Node == "" {
		return fmt.Sprintf("host %d: %s", l.Host, l.Why)
	}
	return fmt.Sprintf("node %s: %s", l.Node, l.Why)
}

// Lose returns the job with hosts that it lost at at, but for those of which that is known.
func (j Job) Lose(at time.Time, hosts ...LostHost) Job {
	j.Lost = slices.Clone(j.Lost)
	for _, l := range hosts {
		if !slices.ContainsFunc(j.Lost, func(known LostHost) bool { return known.Host == l.Host }) {
			l.At = at
			j.Lost = append(j.Lost, l)
		}
	}
	return j
}

// shortName is a host's name without its domain: batch systems and hosts may differ in that.
func shortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// Nodes is how many nodes one of a site's queues has, the default one if none is named; 0 if that is not known.
func (s Site) Nodes(queue string) int {
	if s.Facts != nil {
		for _, q := range s.Facts.Queues {
			if q.Name == queue || queue == "" && q.Default {
				return q.Nodes
			}
		}
	}
	return 0
}
