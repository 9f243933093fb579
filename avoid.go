package corral

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// AvoidAfter is the number of consecutive attempts that must fail on a node before new attempts avoid it.
	AvoidAfter = 3

	// AvoidFor is the time for which a failure counts. The node may have been repaired since then.
	AvoidFor = 24 * time.Hour

	avoidMost = 32 // nodes: the length of a batch system's command line is limited
)

// A BadNode is a node of a site that new attempts avoid, if the batch system supports that.
type BadNode struct {
	Node     string    `json:"node"`
	Attempts int       `json:"attempts"` // consecutive attempts that failed on it
	Why      string    `json:"reason"`   // for the last failure
	Last     time.Time `json:"failed_at"`
	Since    time.Time `json:"since"` // when enough attempts had failed
	Until    time.Time `json:"until"` // when too few of the failures still count
}

// String describes the node, its failures and the last reason for people.
func (b BadNode) String() string {
	return fmt.Sprintf("%s (%d attempts in a row failed on it, the last at %s: %s)",
		b.Node, b.Attempts, b.Last.UTC().Format(time.RFC3339), b.Why)
}

// BadNodes returns the nodes of a site on which consecutive attempts failed and no worker has started since, the most
// recent failure first. attempts are the attempts that lost hosts. cleared maps a host to the time up to which its
// losses are forgiven. nodes is the number of nodes available to the next attempt, 0 if unknown; hosts is the number of
// nodes that the attempt needs. BadNodes names at most half of the nodes and leaves enough for the attempt: if most
// nodes seem bad, the real cause is a different one, and excluding all of these nodes would leave the attempt in the
// queue forever. For the same reason an attempt that lost several hosts and never had a worker is not counted.
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
	lost := map[string][]LostHost{} // :: short name → losses of attempts there
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

// badNode returns the node on which attempts lost these hosts; lost has at least AvoidAfter entries.
func badNode(lost []LostHost) BadNode {
	slices.SortStableFunc(lost, func(a, b LostHost) int { return a.At.Compare(b.At) })
	last := lost[len(lost)-1]
	return BadNode{
		Node: last.Node, Attempts: len(lost), Why: last.Why, Last: last.At,
		Since: lost[AvoidAfter-1].At, Until: lost[len(lost)-AvoidAfter].At.Add(AvoidFor),
	}
}

// A LostHost is a host of an attempt whose worker ended early or never started. The attempt's other hosts continue.
type LostHost struct {
	Host int       `json:"host"`           // its number; host 0 is on the batch job's first node
	Node string    `json:"node,omitempty"` // the batch system's name for it; empty if the node is not at fault
	Why  string    `json:"reason"`
	At   time.Time `json:"at,omitzero"`
}

// String names the node, or the host if the node is not at fault, with the reason.
func (l LostHost) String() string {
	if l.Node == "" {
		return fmt.Sprintf("host %d: %s", l.Host, l.Why)
	}
	return fmt.Sprintf("node %s: %s", l.Node, l.Why)
}

// lose returns the job with these hosts recorded as lost at the given time, except for hosts that are already recorded.
func (j Job) lose(at time.Time, hosts ...LostHost) Job {
	j.Lost = slices.Clone(j.Lost)
	for _, l := range hosts {
		if !slices.ContainsFunc(j.Lost, func(known LostHost) bool { return known.Host == l.Host }) {
			l.At = at
			j.Lost = append(j.Lost, l)
		}
	}
	return j
}

// ShortName returns a host's name without its domain, which batch systems and hosts may report differently.
func ShortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// Nodes returns the number of nodes of one of the site's queues, or of the default queue if none is named; 0 if
// unknown.
func (s Site) Nodes(queue string) int {
	q, _ := s.Facts.In(queue)
	return q.Nodes
}
