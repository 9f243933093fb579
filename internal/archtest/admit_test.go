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
	storePackage = "internal/store"
	admitPackage = "internal/work/admit"
)

// A rower is a method of store.Tx that puts new rows into the database: who may call it, and why not internal/work/admit alone.
type rower struct {
	callers []string
	why     string
}

// admitted is of methods that make what somebody asks for.
var admitted = rower{callers: []string{admitPackage}}

// rowers lists the methods of store.Tx that insert rows. One that is not here fails TestRequestsAreAdmitted.
var rowers = map[string]rower{
	"CreateSite": admitted, "CreateCluster": admitted, "CreateGlidein": admitted, "CreateRun": admitted, "CreatePlan": admitted,
	"CreateEnsemble": admitted, "CreateScale": admitted, "CreateProfile": admitted, "CreateToken": admitted,
	"CreatePackage": admitted, "CreateMirror": admitted, "Reserve": admitted,
}

// enlargers lists the methods of store.Tx that insert no row and yet give an owner more, or count for that: they are the
// questions' and the answer's, too.
var enlargers = map[string]rower{"GrowProfile": admitted, "Room": admitted}

// TestRequestsAreAdmitted: what is asked for becomes a row in one package, which asks whether the owner may have it. A
// handler, or a loop of corrald, that stores a row by itself has forgotten to ask.
func TestRequestsAreAdmitted(t *testing.T) {
	known := maps.Clone(rowers)
	maps.Copy(known, enlargers)
	called := map[string]bool{}
	for _, p := range packagesOf(t) {
		if p.pkg == storePackage {
			inserting := insertingMethods(p)
			for _, name := range inserting {
				if _, ok := rowers[name]; !ok {
					t.Errorf("store.Tx.%s inserts rows: say in rowers (admit_test.go) who may call it", name)
				}
			}
			for name := range rowers {
				if !slices.Contains(inserting, name) {
					t.Errorf("store.Tx.%s inserts no rows: rowers is out of date", name)
				}
			}
		}
		if below(p.pkg, []string{storePackage}) {
			continue
		}
		for s, chosen := range p.info.Selections {
			r, ok := known[methodOfTx(chosen.Obj())]
			if !ok {
				continue
			}
			called[s.Sel.Name+" in "+p.pkg] = true
			if !slices.Contains(r.callers, p.pkg) {
				t.Errorf("%s: %s makes a row of a request that nothing has judged: call %s, as %s does", at(s), s.Sel.Name,
					admitPackage, strings.Join(r.callers, ", "))
			}
		}
	}
	for name, r := range known {
		for _, pkg := range r.callers {
			if !called[name+" in "+pkg] {
				t.Errorf("%s does not call store.Tx.%s: the table is out of date", pkg, name)
			}
		}
		if !slices.Equal(r.callers, admitted.callers) && r.why == "" {
			t.Errorf("say why store.Tx.%s is not called by %s alone", name, admitPackage)
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
