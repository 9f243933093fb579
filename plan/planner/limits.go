package planner

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/plan"
)

// cuts returns the limits of sites that ruled candidates out, and those that no candidate could try to exceed. Of
// limits that differ in their numbers alone the first stands for all: it is that of the smallest candidate. most is how
// many cpus can be of use at once.
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
			said = append(said, fmt.Sprintf("site %s: at most %s at once, and %d could be of use", s.Name,
				cpus(s.CPUs), most))
		}
		if s.Pilots < plan.Unlimited && s.Pilots*s.Host.CPUs < most {
			said = append(said, fmt.Sprintf("site %s: at most %d pilots at once, and %d cpus could be of use", s.Name,
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
