package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// A door is a way by which actions leave corrald: calls that only one file may make, where each has its fault point.
var doors = []struct {
	within  []string // the package, with those below it
	but     []string // what is on the other side of the door
	calls   []string // methods, or functions with their package
	on      string   // how the value is called whose methods they are
	through []string // the only files that may, the door first
}{
	{within: []string{"gridsite"}, but: []string{"gridsite/local", "gridsite/ssh", "gridsite/gridsitetest"},
		calls: []string{"Run", "Put", "Stream"}, on: "conn", through: []string{"gridsite/door.go"}},
	{within: []string{"condor"}, but: []string{"condor/transfer"}, calls: []string{"Start", "Run", "Output", "CombinedOutput"}, on: "cmd",
		through: []string{"condor/tools.go"}},
	{within: []string{"internal/store"}, calls: []string{"Commit"}, on: "tx", through: []string{"internal/store/db.go", "internal/store/migrate.go"}},
	{within: []string{"internal/sites/delivery"}, calls: []string{"Fetch"}, on: "fetch", through: []string{"internal/sites/delivery/catalog.go"}},
}

// TestActionsLeaveThroughDoors: an action that has no fault point is one of which nobody has seen the failures.
func TestActionsLeaveThroughDoors(t *testing.T) {
	for _, d := range doors {
		used := false
		for _, f := range source(t, production) {
			if !below(f.pkg, d.within) || below(f.pkg, d.but) {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains(d.calls, s.Sel.Name) || !strings.EqualFold(lastName(s.X), d.on) {
					return true
				}
				used = used || f.name == d.through[0]
				if !slices.Contains(d.through, f.name) {
					t.Errorf("%s: %s.%s leaves corrald without a fault point: go through %s", at(s), d.on, s.Sel.Name, d.through[0])
				}
				return true
			})
		}
		if !used {
			t.Errorf("nothing goes through %s: the table is out of date", d.through[0])
		}
	}
}

// below reports whether a package is one of some, or below one.
func below(pkg string, some []string) bool {
	return slices.ContainsFunc(some, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// lastName is what a value is called: conn of n.conn.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// starters start programs or speak with the network in corrald, on this side of no door, and why that is right.
var starters = map[string]string{
	"condor":                  "the door of HTCondor's commands",
	"gridsite/local":          "behind the door of sites",
	"gridsite/ssh":            "behind the door of sites",
	"gridsite/gridsitetest":   "for tests",
	"internal/node/runas":     "looks at folders before corrald has a state",
	"internal/work/run":       "before and after tasks, at the worker or beside the run: a failure is the task's",
	"packages":                "looks for programs, and starts none",
	"packages/htcondor":       "makes packages, as a command of its own",
	"internal/node/nodecheck": "asks this machine what it is",
	"internal/sites/delivery": "looks for HTCondor on this machine, and starts none",
	"internal/node/process":   "in the pilot", "internal/node/condorworker": "in the pilot",
	"internal/shim/slurm": "in the shim", "internal/service/personal": "in the client", "internal/cli/baseline": "in the client", "internal/cli": "in the client",
	"internal/kit/netns": "for tests", "internal/kit/programs": "for tests",
}

// TestStartersAreKnown: whatever starts programs in corrald is behind a door, or is known not to need one.
func TestStartersAreKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range source(t, production) {
		if below(f.pkg, []string{"bench", "cmd", "examples"}) {
			continue
		}
		_, others := f.imports()
		if !slices.Contains(others, "os/exec") {
			continue
		}
		seen[f.pkg] = true
		if starters[f.pkg] == "" {
			t.Errorf("%s starts programs: behind which door?", f.name)
		}
	}
	for pkg := range starters {
		if !seen[pkg] {
			t.Errorf("%s starts no program", pkg)
		}
	}
}
