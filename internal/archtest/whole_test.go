package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// seesAll lists the packages that may open a transaction that sees the rows of all owners, with the reasons. Other
// background work opens a transaction for one owner (store.Owner).
var seesAll = map[string]string{
	"cmd/corrald":                "retention",
	"internal/condor/condorpool": "finds the clusters whose pools it keeps",
	"internal/sites/engine":      "finds the sites that it serves",
	"internal/work/ensembles":    "finds the ensembles that it carries out",
	"internal/service/events":    "reads the history once for all listeners, each of whom is told of what is theirs",
	"internal/sites/admission":   "finds the owner of an attempt by its tag, before anything else is known of who dials in",
	"internal/service/metrics":   "counts",
	"internal/service/outage":    "finds what is alive, and writes each entry for its owner",
	"internal/service/owners":    "finds the owners whose accounts are being ended",
	"internal/work/provision":    "finds the plans that are under way",
	"internal/work/run":          "recovers runs; folders of runs must not hold one another, whosever they are",
	"internal/work/scaling":      "finds the clusters that are scaled",
	"internal/store":             "is what opens them",
}

// TestFewSeeTheRowsOfAllOwners: background work that sees the rows of all owners will sooner or later resolve a name to
// another owner's object.
func TestFewSeeTheRowsOfAllOwners(t *testing.T) {
	used := map[string]bool{}
	for _, f := range source(t, production) {
		if f.pkg == "internal/store/storetest" || !slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool {
			return strings.HasSuffix(i.Path.Value, `/internal/store"`)
		}) && f.pkg != "internal/store" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch {
			case s.Sel.Name == "Whole" && len(call.Args) == 0, s.Sel.Name == "ReadWhole":
				used[f.pkg] = true
				if seesAll[f.pkg] == "" {
					t.Errorf("%s: opens a transaction that sees the rows of all owners: open one for an owner, "+
						"or say in seesAll (whole_test.go) why not", at(s))
				}
			case s.Sel.Name == "Caller" && len(call.Args) == 1 && f.pkg != "internal/store":
				t.Errorf("%s: opens transactions for a caller of its own: those of a request are opened with Request", at(s))
			}
			return true
		})
	}
	for pkg := range seesAll {
		if !used[pkg] {
			t.Errorf("%s opens none: the table is out of date", pkg)
		}
	}
}
