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

	// AvoidFor is how long an attempt counts: somebody may have mended the node.
	AvoidFor = 24 * time.Hour

	avoidMost = 32 // nodes at once: a batch system's command line is not endless
)

// A BadNode is a node of a site that new attempts avoid, where the batch system can do that.
type BadNode struct {
	Node     string    `json:"node"`
	Attempts int       `json:"attempts"` // in a row that had no use of it
	Why      string    `json:"reason"`   // the last one's
	Last     time.Time `json:"failed_at"`
	Since    time.Time `json:"since"` // when there were enough of them
	Until    time.Time `json:"until"` // when there are not any more
}

func (b BadNode) String() string {
	return fmt.Sprintf("%s (%d attempts in a row failed on it, the last at %s: %s)",
		b.Node, b.Attempts, b.Last.UTC().Format(time.RFC3339), b.Why)
}

// BadNodes returns the nodes of a site of which one attempt after the other had no use, and on which no worker has
// come to life since; what failed last first. attempts are those that lost hosts; cleared says until when it is
// forgotten what was lost, by host; nodes is how many there are where the next attempt may go, 0 if that is not
// known, of which it wants hosts. At most half of the nodes are avoided, and enough are left: where most nodes are
// bad, something else is, and to name them all would keep an attempt in the queue without end. For the same reason an
// attempt says nothing of its nodes if it lost several and no worker of it ever lived.
func BadNodes(attempts []Job, cleared map[string]time.Time, nodes, hosts int, now time.Time) []BadNode {
	until := map[string]time.Time{} // :: short name → cleared
	seen := map[string]bool{}
	for host, at := range cleared {
		short := ShortName(host)
		seen[short] = true
		if at.After(until[short]) {
			until[short] = at
		}
	}
	lost := map[string][]LostHost{} // :: short name → what attempts lost there
	for _, j := range attempts {
		if j.Workers == 0 && len(j.Lost) > 1 {
			continue
		}
		for _, l := range j.Lost {
			if short := ShortName(l.Node); short != "" {
				lost[short] = append(lost[short], l)
			}
		}
	}
	var bad []BadNode
	for short, all := range lost {
		seen[short] = true
		counted := slices.DeleteFunc(all, func(l LostHost) bool {
			return now.Sub(l.At) >= AvoidFor || !l.At.After(until[short])
		})
		if len(counted) >= AvoidAfter {
			bad = append(bad, badNode(counted))
		}
	}
	slices.SortFunc(bad, func(a, b BadNode) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.Node, b.Node))
	})
	nodes = cmp.Or(nodes, len(seen))
	return bad[:max(0, min(len(bad), nodes/2, nodes-hosts, avoidMost))]
}

// badNode is the node on which attempts lost these hosts, at least AvoidAfter of them.
func badNode(lost []LostHost) BadNode {
	slices.SortStableFunc(lost, func(a, b LostHost) int { return a.At.Compare(b.At) })
	last := lost[len(lost)-1]
	return BadNode{
		Node: last.Node, Attempts: len(lost), Why: last.Why, Last: last.At,
		Since: lost[AvoidAfter-1].At, Until: lost[len(lost)-AvoidAfter].At.Add(AvoidFor),
	}
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

// ShortName is a host's name without its domain: batch systems and hosts may differ in that.
func ShortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// Nodes is how many nodes one of a site's queues has, the default one if none is named; 0 if that is not known.
func (s Site) Nodes(queue string) int {
	q, _ := s.Facts.In(queue)
	return q.Nodes
}
