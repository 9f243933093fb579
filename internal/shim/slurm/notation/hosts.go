package notation

import (
	"fmt"
	"strings"
)

// MaxHosts limits the result of Hosts.
const MaxHosts = 64 << 10

// Hosts expands a list of nodes: "n[1-3,05],login" means n1, n2, n3, n05 and login.
func Hosts(list string) ([]string, error) {
	var hosts []string
	for list != "" {
		var one string
		one, list = cutList(list)
		if one == "" {
			continue
		}
		more, err := expandHosts(one)
		if err != nil {
			return nil, err
		}
		if len(hosts)+len(more) > MaxHosts {
			return nil, fmt.Errorf("more than %d hosts", MaxHosts)
		}
		hosts = append(hosts, more...)
	}
	return hosts, nil
}

// expandHosts expands one entry, which may contain one pair of brackets at any position.
func expandHosts(one string) ([]string, error) {
	prefix, rest, ok := strings.Cut(one, "[")
	if !ok {
		return []string{one}, nil
	}
	ranges, suffix, ok := strings.Cut(rest, "]")
	if !ok || strings.ContainsAny(suffix, "[]") {
		return nil, fmt.Errorf("Invalid hostlist: %s", one) // Slurm's wording
	}
	var hosts []string
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, _, err := parseRange(part)
		if err != nil || strings.Contains(part, ":") || last-first >= MaxHosts || len(hosts) > MaxHosts {
			return nil, fmt.Errorf("Invalid hostlist: %s", one) // Slurm's wording
		}
		width := len(part)
		if i := strings.IndexByte(part, '-'); i >= 0 {
			width = i
		}
		for n := first; n <= last; n++ {
			hosts = append(hosts, fmt.Sprintf("%s%0*d%s", prefix, width, n, suffix))
		}
	}
	return hosts, nil
}

// A hostRun is a series of hosts named by one entry of a list: those from first to last, or a single host whose name
// does not end with a number.
type hostRun struct {
	prefix      string
	first, last int
	width       int // of the numbers, with leading zeros; 0: no number
}

// JoinHosts formats names of nodes, in order, as a list for Hosts: n1, n2, n5 and x become "n[1-2,5],x".
func JoinHosts(names []string) string {
	var runs []hostRun
	for _, name := range names {
		next := runOf(name)
		if n := len(runs); n == 0 || !runs[n-1].take(next) {
			runs = append(runs, next)
		}
	}
	var b strings.Builder
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[0].width > 0 && runs[n].width > 0 && runs[n].prefix == runs[0].prefix {
			n++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(runs[0].prefix + brackets(runs[:n]))
		runs = runs[n:]
	}
	return b.String()
}

// brackets formats the numbers of runs with the same prefix.
func brackets(runs []hostRun) string {
	var parts []string
	for _, r := range runs {
		switch {
		case r.width == 0:
			return ""
		case r.first == r.last:
			parts = append(parts, fmt.Sprintf("%0*d", r.width, r.first))
		default:
			parts = append(parts, fmt.Sprintf("%0*d-%0*d", r.width, r.first, r.width, r.last))
		}
	}
	if len(parts) == 1 && runs[0].first == runs[0].last {
		return parts[0]
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// runOf splits a name before its final number. Digits with a value beyond the supported range do not count as a number.
func runOf(name string) hostRun {
	prefix := strings.TrimRight(name, "0123456789")
	n, ok := number(name[len(prefix):])
	if !ok {
		return hostRun{prefix: name}
	}
	return hostRun{prefix, int(n), int(n), len(name) - len(prefix)}
}

// take appends the next run to r if it continues r and its numbers have the same width. It reports whether it did so.
func (r *hostRun) take(next hostRun) bool {
	if r.width == 0 || next.width == 0 || r.prefix != next.prefix || next.first != r.last+1 {
		return false
	}
	if as := fmt.Sprintf("%0*d", r.width, next.first); len(as) != next.width {
		return false
	}
	r.last = next.last
	return true
}
