package corral

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// AvoidAfter is how many attempts in a row must have failed on a node.
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

// BadNodes returns the nodes of a site on which one attempt after the other failed, and no worker has come to life since;
// what failed last first. reports are ended attempts that named a node; worked says when a worker was seen last, by host;
// nodes is how many the site has, 0 if that is not known. At most half of the nodes are avoided of which we know: where
// most nodes are bad, something else is, and to name them all would keep an attempt in the queue for ever.
func BadNodes(reports []Job, worked map[string]time.Time, nodes int, now time.Time) []BadNode {
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
	for _, j := range reports {
		short := shortName(j.Node)
		seen[short] = true
		if b := failed[short]; now.Sub(j.EndedAt) < AvoidFor && j.EndedAt.After(lived[short]) {
			b.Failures++
			if !j.EndedAt.Before(b.Last) {
				b.Node, b.Last, b.Why = j.Node, j.EndedAt, j.Reason
			}
			failed[short] = b
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
	return bad[:min(len(bad), max(nodes, len(seen))/2, avoidMost)]
}

// shortName is a host's name without its domain: batch systems and hosts may differ in that.
func shortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// Nodes is how many nodes the largest of a site's queues has; 0 if that is not known.
func (s Site) Nodes() int {
	most := 0
	if s.Facts != nil {
		for _, q := range s.Facts.Queues {
			most = max(most, q.Nodes)
		}
	}
	return most
}
