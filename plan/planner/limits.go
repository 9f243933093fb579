package planner

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/plan"
)

// cuts returns the limits of sites that ruled out candidates, and the limits that no candidate could exceed. If limits
// differ only in their numbers, the first represents all; it belongs to the smallest candidate. most is the number of
// cpus that can be useful at once.
func cuts(sites []plan.Site, most int, all []outcome) []string {
	var said []string
	seen := map[string]bool{}
	for _, o := range all {
		if kind := strings.Trim(strings.Map(withoutDigits, o.limit), " "); kind != "" && !seen[kind] {
			seen[kind] = true
			said = append(said, o.limit)
		}
	}
	for _, s := range sites {
		if s.CPUs < most && s.CPUs < plan.Unlimited {
			said = append(said, fmt.Sprintf("site %s: at most %s at once, but %d could be of use", s.Name,
				cpus(s.CPUs), most))
		}
		if s.Pilots < plan.Unlimited && s.Pilots*s.Host.CPUs < most {
			said = append(said, fmt.Sprintf("site %s: at most %d pilots at once, but %d cpus could be of use", s.Name,
				s.Pilots, most))
		}
	}
	return said
}

func withoutDigits(r rune) rune {
	if strings.ContainsRune("0123456789.", r) {
		return -1
	}
	return r
}
