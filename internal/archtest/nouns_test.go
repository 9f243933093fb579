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
	"Job": {
		"internal/condor/stream", "internal/decide/execution", "internal/decide/matching",
		"plan/sim/queue", "workflow/formats/dagman/submit",
	},
	"Machine": {"plan/ensemble", "plan/sim/queue"},
	"Pilot":   {"internal/node/jobfiles", "internal/work/admit", "plan/planner/revision"},
	"Plan":    {root, "plan/ensemble", "plan/planner/greedy", "plan/planner/slotted"},
	"Policy":  {"plan/ensemble", "plan/planner/baseline", "plan/sim/queue"},
	"Queue": {
		"internal/condor/condorpool", "internal/condor/schedd", "internal/work/run", "plan",
	},
	"Run": {"internal/decide/matching", "plan/selection"},
	"Site": {
		"internal/work/scaling", "plan", "plan/planner/portfolio", "plan/planner/slotted", "plan/sim",
	},
	"Slot": {"internal/decide/matching", "internal/node/condorworker", "plan/ensemble", "plan/planner"},
	"Task": {
		"api", "internal/decide/execution", "plan", "plan/planner/revision",
		"workflow/clustering", "workflow/profile",
	},
	"Wait":   {"api", "internal/decide/execution", "plan"},
	"Worker": {"internal/decide/attempt"},
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
