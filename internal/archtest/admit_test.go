package archtest

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	storePackage   = "internal/store"
	admitPackage   = "internal/work/admit"
	requestPackage = "internal/work/request"
)

// A gate lists the packages that may call a function. Without callers, all packages may.
type gate struct {
	callers []string
	why     string // other packages than internal/work/admit may call it
}

// admitted is the gate of functions that create an object on request.
var admitted = gate{callers: []string{admitPackage}}

// inserting lists the methods of store.Tx that come to a statement which inserts rows. The test fails for a method that is
// not here.
var inserting = map[string]gate{
	"CreateSite": admitted, "CreateCluster": admitted, "CreateGlidein": admitted, "CreateRun": admitted, "CreatePlan": admitted,
	"CreateEnsemble": admitted, "CreateScale": admitted, "CreateProfile": admitted, "CreateToken": admitted,
	"CreatePackage": admitted, "CreateMirror": admitted, "Reserve": admitted,

	"CreateJob": {[]string{"internal/sites/engine", "internal/service/server"},
		"the glidein, or the site, was admitted with all of its jobs"},
	"AddProbe":     {[]string{"internal/sites/siteaccess"}, "a look at a site that was admitted, which ends by itself"},
	"AddPoolToken": {[]string{"internal/condor/condorpool"}, "lets the workers of an attempt in, whose glidein was admitted"},
	"RevisePlan":   {[]string{"internal/work/provision"}, "records a decision, whose pilots are admitted one by one"},

	"CheckMirror":  {nil, "replicas: what a mirror was seen to have"},
	"DeleteMirror": {nil, "removes replicas, and adds none"},
	"ForgiveNodes": {nil, "nodes: what is known of them"},
	"NoteHosts":    {nil, "nodes: what is known of them"},
	"MoveOwner":    {nil, "an account that an administrator moves, which gives its owner nothing"},
	"Once":         {nil, "the answer to a request"},
	"SetUsage":     {nil, "what a run took"},
}

// enlarging lists the methods of store.Tx that insert no row, and yet enlarge one or decide about that.
var enlarging = map[string]gate{"GrowProfile": admitted, "Room": admitted}

// judging lists the functions of internal/work/request that validate requests for new objects.
var judging = map[string]gate{
	"Site": admitted, "Cluster": admitted, "Scale": admitted, "Token": admitted, "CheckLabels": admitted, "CheckRun": admitted,
	"CheckPlan": admitted, "CheckEnsemble": admitted, "CheckProfile": admitted, "CheckPackage": admitted, "CheckMirror": admitted,
	"Place": admitted,
	"Glidein": {[]string{admitPackage, "internal/work/ensembles"},
		"an ensemble looks which of its tasks fit into pilots before it has a cluster"},
}

// Only package admit creates rows that somebody has requested. A handler, or a loop of corrald, that stores such a row by
// itself skips the checks.
func TestRequestsAreAdmitted(t *testing.T) {
	gates := maps.Clone(inserting)
	maps.Copy(gates, enlarging)
	called := map[string][]string{} // :: method → its callers
	for _, p := range packagesOf(t) {
		if p.pkg == storePackage {
			found := insertingMethods(p)
			if want := slices.Sorted(maps.Keys(inserting)); !slices.Equal(found, want) {
				t.Errorf("the methods of store.Tx that insert rows are\n%q, and in the table of admit_test.go\n%q: "+
					"who may call a new one?", found, want)
			}
		}
		if below(p.pkg, []string{storePackage}) {
			continue
		}
		for s, chosen := range p.info.Selections {
			if name := methodOfTx(chosen.Obj()); name != "" {
				called[name] = append(called[name], p.pkg)
				gates[name].check(t, s.Sel, p.pkg)
			}
		}
	}
	upToDate(t, gates, called)
}

// Only package admit validates requests for new objects. A handler that does so by itself skips the checks of its caller.
func TestRequestsAreReadByAdmit(t *testing.T) {
	called := map[string][]string{} // :: function → its callers
	for _, p := range packagesOf(t) {
		if p.pkg == requestPackage {
			continue
		}
		for n, o := range p.info.Uses {
			f, ok := o.(*types.Func)
			if !ok || f.Pkg() == nil || f.Pkg().Path() != module+"/"+requestPackage || f.Signature().Recv() != nil {
				continue
			}
			called[f.Name()] = append(called[f.Name()], p.pkg)
			judging[f.Name()].check(t, n, p.pkg)
		}
	}
	upToDate(t, judging, called)
}

// check fails the test if a package may not make a call.
func (g gate) check(t *testing.T, call *ast.Ident, pkg string) {
	t.Helper()
	if len(g.callers) > 0 && !slices.Contains(g.callers, pkg) {
		t.Errorf("%s: %s may be called by %s only: go through it", at(call), call.Name, strings.Join(g.callers, ", "))
	}
}

// upToDate fails the test if a table names a caller that does not call, or has no reason.
func upToDate(t *testing.T, gates map[string]gate, called map[string][]string) {
	t.Helper()
	for name, g := range gates {
		for _, pkg := range g.callers {
			if !slices.Contains(called[name], pkg) {
				t.Errorf("%s does not call %s: the table is out of date", pkg, name)
			}
		}
		if !slices.Equal(g.callers, admitted.callers) && g.why == "" {
			t.Errorf("say why %s is not called by %s alone", name, admitPackage)
		}
	}
}

// methodOfTx returns the name of a method of store.Tx, and "" for all other objects.
func methodOfTx(o types.Object) string {
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return ""
	}
	if of, _ := structOf(f.Signature().Recv().Type()); of != storePackage+".Tx" {
		return ""
	}
	return f.Name()
}

// insertingMethods returns the exported methods of store.Tx that come to an SQL statement which inserts, by whatever functions of
// the package, in order. Lines of history do not count: each change writes one.
func insertingMethods(p *checkedPackage) (names []string) {
	inserts, calls := map[types.Object]bool{}, map[types.Object][]types.Object{}
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name == "record" {
				continue
			}
			of := p.info.Defs[fn.Name]
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					text, _ := strconv.Unquote(n.Value)
					inserts[of] = inserts[of] || strings.HasPrefix(strings.TrimSpace(text), "insert ")
				case *ast.Ident:
					if called, ok := p.info.Uses[n].(*types.Func); ok {
						calls[of] = append(calls[of], called.Origin())
					}
				}
				return true
			})
		}
	}
	for grew := true; grew; {
		grew = false
		for of, all := range calls {
			if !inserts[of] && slices.ContainsFunc(all, func(f types.Object) bool { return inserts[f] }) {
				inserts[of], grew = true, true
			}
		}
	}
	for of, yes := range inserts {
		if name := methodOfTx(of); yes && of.Exported() && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
