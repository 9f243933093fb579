package gate

import (
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
)

const (
	maxLost     = 1024 // hosts of one attempt that are kept
	maxNodeName = 255  // bytes, as in DNS
)

// LostHosts returns the hosts that a pilot says it has lost, as far as their names and reasons are fit for others to
// see: at most 1024, with NodeName's names and reasons of one line.
func LostHosts(told []corral.LostHost) (lost []corral.LostHost) {
	for _, l := range told[:min(len(told), maxLost)] {
		l.Node, l.Why = NodeName(l.Node), order.OneLine(l.Why)
		lost = append(lost, l)
	}
	return lost
}

// NodeName returns the name that a report, or a batch system, has for a node; empty if no host can be called so. The
// name goes back to the batch system, as that of a node to avoid: it must not be read there as an option, or as a list.
func NodeName(said string) string {
	said = strings.TrimSpace(said)
	for _, r := range said {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return ""
		}
	}
	if len(said) > maxNodeName || strings.HasPrefix(said, "-") {
		return ""
	}
	return said
}
