package archtest

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"testing"
)

// parsers make values of the texts of workflows and plans.
var parsers = map[string]bool{
	module + "/workflow/formats.Read": true, module + "/workflow/formats.ReadFile": true,
	module + "/workflow/formats/wfformat.Read": true, module + "/plan.Decode": true,
	module + "/internal/work/request.Workflow": true,
}

// mayParse lists the functions of corrald that call a parser, each once, and the text that each is the first to see. All other
// functions are given a *workflow.Workflow or a *plan.Plan. The command line is a door itself: it parses files, whose errors
// have a line and a column, and answers of corrald.
var mayParse = map[string]string{
	"internal/work/request: Workflow": "the workflow in a request's body",

	"internal/service/server: runHandlers.complete":   "POST /v1/runs, and its dry run",
	"internal/service/server: planHandlers.draft":     "POST /v1/plans",
	"internal/service/server: planHandlers.beginning": "a plan's row, before the transaction that begins it",
	"internal/service/server: planHandlers.schedule":  "a plan's row",

	"internal/work/ensembles: read":          "POST /v1/ensembles, and the ensemble's files when corrald begins to carry it out",
	"internal/work/ensembles: carrier.begin": "the file of a workflow whose run begins: the ensemble does not hold it until then",

	"internal/work/run: loadPlan": "the file of a run, when corrald starts or the run is not driven",
	"internal/work/run: Profile":  "the executed workflow of a run that has left no profile",

	"internal/work/provision: promised":    "a plan's row, whose value the reviser keeps",
	"internal/work/provision: hedges.find": "a plan's row, of which one answer is kept",
}

// TestTextsAreParsedAtTheDoor: a workflow of a million tasks takes seconds to parse, and the value far more memory than its
// text. What has been parsed is handed on.
func TestTextsAreParsedAtTheDoor(t *testing.T) {
	seen := map[string]int{}
	for _, p := range packagesOf(t) {
		if !below(p.pkg, []string{"internal"}) || below(p.pkg, []string{"internal/cli"}) {
			continue
		}
		for _, f := range p.files {
			for _, d := range f.Decls {
				for _, call := range p.calls(d) {
					if !parsers[p.callee(call)] && !p.decodesPlan(call) {
						continue
					}
					name := p.pkg + ": " + declared(d)
					if seen[name]++; mayParse[name] == "" || seen[name] > 1 {
						t.Errorf("%s: %s parses a workflow or a plan, %d time(s): it should be given the value", at(call), name, seen[name])
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mayParse)) {
		if seen[name] == 0 {
			t.Errorf("mayParse: %s calls no parser: remove it", name)
		}
	}
}

// calls returns the calls in a declaration.
func (p *checkedPackage) calls(d ast.Decl) (all []*ast.CallExpr) {
	ast.Inspect(d, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			all = append(all, call)
		}
		return true
	})
	return all
}

// callee names the function of a package that a call calls, with the package's path; "": it calls another thing.
func (p *checkedPackage) callee(call *ast.CallExpr) string {
	id, ok := call.Fun.(*ast.Ident)
	if s, selects := call.Fun.(*ast.SelectorExpr); selects {
		id, ok = s.Sel, true
	}
	if !ok {
		return ""
	}
	f, ok := p.info.Uses[id].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return ""
	}
	return f.Pkg().Path() + "." + f.Name()
}

// decodesPlan reports whether a call decodes a plan's document with package json, past plan.Decode.
func (p *checkedPackage) decodesPlan(call *ast.CallExpr) bool {
	if p.callee(call) != "encoding/json.Unmarshal" {
		return false
	}
	name, ok := structOf(p.info.TypeOf(call.Args[1]))
	return ok && name == "plan.Plan"
}
