package notation

import (
	"fmt"
	"strings"
)

// MaxHosts bounds what Hosts returns.
const MaxHosts = 64 << 10

// Hosts names the nodes of a list: "n[1-3,05],login" are n1, n2, n3, n05 and login.
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

// expandHosts expands one entry, whose brackets may stand anywhere, but only once.
func expandHosts(one string) ([]string, error) {
	prefix, rest, ok := strings.Cut(one, "[")
	if !ok {
		return []string{one}, nil
	}
	ranges, suffix, ok := strings.Cut(rest, "]")
	if !ok || strings.ContainsAny(suffix, "[]") {
		return nil, fmt.Errorf("Invalid hostlist: %s", one) // Slurm's words
	}
	var hosts []string
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, _, err := parseRange(part)
		if err != nil || strings.Contains(part, ":") || last-first >= MaxHosts || len(hosts) > MaxHosts {
			return nil, fmt.Errorf("Invalid hostlist: %s", one) // Slurm's words
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
