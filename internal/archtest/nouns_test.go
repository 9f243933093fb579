package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// domainNouns lists the words of the domain, each with the one package whose exported type bears it. Elsewhere a type with the
// same name would mean something else, or would be a second representation. Unexported names are free, as are Config,
// Options, Kind and State.
var domainNouns = map[string]string{
	"Site":    root,
	"Job":     root, // of a batch system
	"Run":     root,
	"Wait":    root,
	"Worker":  root,
	"Task":    "workflow",
	"Machine": "workflow", // on which a recorded task ran
	"Plan":    "plan",
	"Pilot":   "plan",
	"Slot":    "plan/slot",
	"Queue":   "plan/sim/queue",
	"Policy":  "resubmit",
}

// nounsLeft lists the types that still have the noun of another package. It may only become shorter.
var nounsLeft = map[string][]string{
	"Job":     {"internal/decide/execution", "internal/decide/matching", "plan/sim/queue"},
	"Machine": {"plan/sim/queue"},
	"Pilot":   {"plan/planner/revision"},
	"Plan":    {root, "bench/greedy", "plan/ensemble", "plan/planner/slotted"},
	"Queue":   {"plan"},
	"Run":     {"internal/decide/matching"},
	"Site":    {"bench/portfolio", "plan", "plan/planner/slotted", "plan/sim"},
	"Slot":    {"internal/decide/matching", "plan/planner"},
	"Task":    {"internal/decide/execution", "plan", "plan/planner/revision"},
	"Wait":    {"plan"},
	"Worker":  {"internal/decide/attempt"},
}

func TestNouns(t *testing.T) {
	left := map[string][]string{}
	for _, f := range source(t, production) {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				if owner, ok := domainNouns[name]; ok && owner != f.pkg {
					left[name] = append(left[name], f.pkg)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(domainNouns)) {
		slices.Sort(left[name])
		if !slices.Equal(left[name], nounsLeft[name]) {
			t.Errorf("%s is %s's: the types of this name elsewhere are of %q, want those of nounsLeft, %q", name, domainNouns[name],
				left[name], nounsLeft[name])
		}
	}
}
