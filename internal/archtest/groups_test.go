package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// A group is a part of the layout: a folder at the top or below internal, with all packages below it that are in no
// group of their own.
type group struct {
	folder string
	what   string
	uses   []string // the groups whose packages it may import
}

// groups lists the layout from the bottom to the top. A package belongs to the group with the longest folder that it is
// in. It may import packages of its own group, among which Go itself refuses cycles, and of the groups that its own
// uses.
var groups = []group{
	{"internal/kit", "knows nothing of Corral", nil},
	{"condor", "HTCondor's files and commands, and none of our nouns", []string{"internal/kit"}},
	{"resubmit", "when another attempt follows", nil},
	{"credential", "how long a credential is valid", nil},
	{root, "the nouns and their moves", []string{"credential", "resubmit"}},
	{"workflow", "workflows: graphs, formats, profiles", []string{"condor", "internal/kit", root}},
	{"plan", "the values of which plans consist", []string{"internal/kit", root, "workflow"}},
	{"api", "the wire types and the Go client", []string{"internal/kit", "plan", root}},
	{"gridsite", "transports and batch systems", []string{"credential", "internal/kit", root}},
	{"packages", "worker packages", []string{"internal/kit", root}},
	{"staging", "mirrors of worker packages", []string{"gridsite", "internal/kit", "packages", root}},
	{"broker", "connections through firewalls", []string{"internal/kit", root}},
	{"internal/decide", "decisions, without I/O and without a clock", []string{
		"credential", "resubmit", root, "workflow"}},
	{"plan/sim", "simulates plans with the decisions of production", []string{
		"credential", "internal/decide", "internal/kit", "plan", "resubmit", root}},
	{"plan/planner", "finds plans", []string{"internal/decide", "internal/kit", "plan", "plan/sim", root, "workflow"}},
	{"internal/embedded", "the personal cluster without HTCondor", []string{
		"broker", "internal/decide", "internal/kit", root, "workflow"}},
	{"internal/node", "what runs on worker nodes", []string{
		"broker", "condor", "internal/embedded", "internal/decide", "internal/kit", "packages", root, "staging"}},
	{"internal/store", "what corrald keeps", []string{"internal/decide", "internal/kit", "plan", root}},
	{"internal/work", "what corrald does with workflows", []string{
		"api", "internal/embedded", "gridsite", "internal/decide", "internal/kit", "internal/node", "internal/store", "plan",
		"plan/planner", "plan/sim", "resubmit", root, "workflow"}},
	{"internal/condor", "what corrald does with HTCondor", []string{
		"condor", "internal/embedded", "internal/decide", "internal/kit", "internal/node", "internal/store", "internal/work", root}},
	{"internal/sites", "what corrald does at sites", []string{
		"broker", "credential", "internal/embedded", "gridsite", "internal/condor", "internal/decide", "internal/kit",
		"internal/node", "internal/store", "internal/work", "packages", root, "staging"}},
	{"internal/service", "the REST service, and what keeps it running", []string{
		"api", "condor", "credential", "gridsite", "internal/decide", "internal/kit", "internal/node", "internal/sites",
		"internal/store", "internal/work", "packages", "plan", root, "workflow"}},
	{"internal/shim", "other systems' commands", []string{"api", "internal/kit", root}},
	{"internal/cli", "the command line", []string{
		"api", "credential", "examples", "internal/decide", "internal/kit", "internal/service", "internal/shim", "packages",
		"plan", "plan/planner", "plan/sim", root, "workflow"}},
	{"cmd", "the programs, each of which wires its parts", nil},
	{"examples", "workflows and programs to begin with", []string{"api", "plan", root}},
	{"bench", "benchmarks, and experiments of papers", nil},
	{"internal/archtest", "tests of the architecture's rules", nil},
	{"internal/e2e", "tests of the programs", nil},
}

// free lists the groups that may import every package of ours: what wires the rest, and what is not in a program.
var free = []string{"cmd", "bench"}

// exceptions lists imports that the groups do not allow, as "PACKAGE → PACKAGE", and why they are right.
var exceptions = map[string]string{
	"internal/decide/attempt → internal/node/jobfiles":   "decides about what an order asks for and a report says",
	"internal/decide/reconcile → internal/node/jobfiles": "the time that a pilot keeps for leaving",
	"plan/sim → internal/node/jobfiles":                  "simulated pilots get the orders of real ones",
	"internal/cli → internal/embedded/ptrace":            "corral trace watches a command here",
	"internal/work/planning → internal/sites/admission":  "which workers a cluster has now",
}

// groupOf returns the group of a package; ok is false if the layout has no place for it.
func groupOf(pkg string) (g group, ok bool) {
	for _, each := range groups {
		in := pkg == each.folder || strings.HasPrefix(pkg, each.folder+"/")
		if in && (!ok || len(each.folder) > len(g.folder)) {
			g, ok = each, true
		}
	}
	return g, ok
}

// used returns what each package of ours imports of ours, without its tests.
func used(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, f := range source(t, production) {
		ours, _ := f.imports()
		imports[f.pkg] = append(imports[f.pkg], ours...)
	}
	return imports
}

func TestImports(t *testing.T) {
	unneeded := maps.Clone(exceptions)
	imports := used(t)
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		from, ok := groupOf(pkg)
		if !ok {
			t.Errorf("%s is in none of the groups (groups_test.go): move it into one", pkg)
			continue
		}
		for _, to := range slices.Compact(slices.Sorted(slices.Values(imports[pkg]))) {
			g, _ := groupOf(to)
			if g.folder == from.folder || slices.Contains(from.uses, g.folder) || slices.Contains(free, from.folder) {
				continue
			}
			edge := pkg + " → " + to
			if exceptions[edge] == "" {
				t.Errorf("%s imports %s, but %s does not use %s (groups_test.go)", pkg, to, from.folder, g.folder)
			}
			delete(unneeded, edge)
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(unneeded)) {
		t.Errorf("the exception %q is not needed: remove it", edge)
	}
}

// builds lists the planners that may use other planners, and why. All others find plans of their own, so that no
// planner depends on another's result: they share the values of plan.
var builds = map[string]string{
	"plan/planner":            "bound limits its search",
	"plan/planner/algorithm":  "compares the plans of all",
	"plan/planner/moga":       "slotted evaluates its choices",
	"plan/planner/montecarlo": "simulates plans beside baselines",
	"plan/planner/rehearsal":  "simulates ensembles' planners in advance",
	"plan/planner/revision":   "makes plans for what is left",
}

func TestPlannersStandAlone(t *testing.T) {
	imports := used(t)
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		g, _ := groupOf(pkg)
		planner := func(to string) bool { g, _ := groupOf(to); return g.folder == "plan/planner" }
		uses := slices.ContainsFunc(imports[pkg], planner)
		switch {
		case uses && g.folder == "plan/sim":
			t.Errorf("%s imports a planner: simulations take the values of plan", pkg)
		case g.folder == "plan/planner" && uses != (builds[pkg] != ""):
			t.Errorf("%s uses other planners: %v, but builds (groups_test.go) says %q", pkg, uses, builds[pkg])
		}
	}
}

// Each group stands above the groups that it uses, and uses none in vain. The command line shows an example.
func TestGroupsPointDown(t *testing.T) {
	place := func(folder string) int {
		return slices.IndexFunc(groups, func(g group) bool { return g.folder == folder })
	}
	imports := used(t)
	for i, g := range groups {
		needed := map[string]bool{}
		for pkg, of := range imports {
			if in, _ := groupOf(pkg); in.folder == g.folder {
				for _, to := range of {
					used, _ := groupOf(to)
					needed[used.folder] = true
				}
			}
		}
		for _, below := range g.uses {
			if at := place(below); at < 0 || at >= i && below != "examples" {
				t.Errorf("%s uses %s, which does not stand below it", g.folder, below)
			}
			if !needed[below] {
				t.Errorf("%s does not use %s: remove it", g.folder, below)
			}
		}
	}
}

// No group is larger than one reader can know.
func TestGroupsAreBounded(t *testing.T) {
	const most = 22_000 // lines, without tests
	size := map[string]int{}
	for _, f := range source(t, production) {
		g, _ := groupOf(f.pkg)
		size[g.folder] += lines(f.ast)
	}
	for _, folder := range slices.Sorted(maps.Keys(size)) {
		t.Logf("%-20s %6d lines", folder, size[folder])
		if size[folder] > most {
			t.Errorf("%s has %d lines, budget %d", folder, size[folder], most)
		}
	}
}
