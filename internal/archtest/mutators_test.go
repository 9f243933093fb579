package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Budgets of structs. A struct's invariant is kept by every function that assigns to its fields, wherever it stands: to turn
// methods into functions, or to move either to another package, does not make it smaller. Readers are free.
const (
	maxMutators      = 15
	maxExemptStructs = 4
)

// TestFewFunctionsChangeAStruct holds structs to maxMutators, those in mutatorsLeft to what they have.
func TestFewFunctionsChangeAStruct(t *testing.T) {
	all := mutators(t)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		n, left := len(all[key]), mutatorsLeft[key]
		switch why, exempt := exemptStructs[key]; {
		case exempt && (n <= maxMutators || why == ""):
			t.Errorf("%s is exempt with %d mutators and the reason %q: an exemption needs both", key, n, why)
		case left != 0 && n < left:
			t.Errorf("%d functions assign to fields of %s, fewer than before: lower it in mutatorsLeft (exemptions_test.go)", n, key)
		case !exempt && n > max(maxMutators, left):
			t.Errorf("%d functions assign to fields of %s, budget %d:\n\t%s", n, key, max(maxMutators, left),
				strings.Join(slices.Sorted(maps.Keys(all[key])), "\n\t"))
		}
	}
	for key, n := range mutatorsLeft {
		if n <= maxMutators || all[key] == nil || exemptStructs[key] != "" {
			t.Errorf("mutatorsLeft: %s is within the budget, exempt or unknown: remove it", key)
		}
	}
	for key := range exemptStructs {
		if all[key] == nil {
			t.Errorf("exemptStructs: no function assigns to fields of %s: remove it", key)
		}
	}
	if n := len(exemptStructs); n > maxExemptStructs {
		t.Errorf("%d structs are exempt, at most %d may be", n, maxExemptStructs)
	}
}

// mutators returns, for each struct of ours, the functions and methods that assign to its fields, as "FOLDER: NAME".
//
// An assignment is =, an operator with =, ++ or --, a range over fields, and what writes in place: an element of a map, a
// slice or an array in a field, and delete, clear, copy and their relatives in maps and slices (inPlace). An assignment
// changes each struct that holds the field by value: x.a.b = v changes the struct of b and that of a, embedded or
// not, up to the first pointer. *x = v changes every field of x.
//
// Construction is free: composite literals, and assignments to what the function has made itself, which is a variable that is
// not a parameter and that only fresh values are assigned to. A function literal belongs to the function around it, whose
// variables are not its own: what it changes there is changed later.
//
// What is written through a pointer to a field (p := &x.f; *p = v; json.Unmarshal(text, &x.f)) does not count for x.
func mutators(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, p := range packagesOf(t) {
		for _, f := range p.files {
			for _, d := range f.Decls {
				for _, changed := range p.changes(d) {
					if found[changed] == nil {
						found[changed] = map[string]bool{}
					}
					found[changed][p.pkg+": "+declared(d)] = true
				}
			}
		}
	}
	return found
}

// declared names a function with its receiver, or the variables that a function literal stands among.
func declared(d ast.Decl) string {
	fn, ok := d.(*ast.FuncDecl)
	switch {
	case !ok:
		return "variables at " + at(d)
	case fn.Recv != nil:
		return baseName(fn.Recv.List[0].Type) + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// changes returns the structs that a declaration's functions assign to.
func (p *checkedPackage) changes(d ast.Decl) []string {
	var changed []string
	walkFunctions(d, nil, func(function, n ast.Node) {
		fresh := func(e ast.Expr) bool { return function != nil && p.isFresh(function, e, nil) }
		for _, target := range p.targets(n) {
			changed = append(changed, p.owners(target, fresh)...)
		}
	})
	return changed
}

// walkFunctions visits the nodes of n with the innermost function that each stands in, its parameters included.
func walkFunctions(n ast.Node, function ast.Node, visit func(function, n ast.Node)) {
	ast.Inspect(n, func(child ast.Node) bool {
		switch child.(type) {
		case nil:
			return false
		case *ast.FuncDecl, *ast.FuncLit:
			if child != n {
				walkFunctions(child, child, visit)
				return false
			}
			function = child
		}
		visit(function, child)
		return true
	})
}

// inPlace are functions of the standard library that write to their first argument.
var inPlace = map[string]bool{
	"maps.Copy": true, "maps.DeleteFunc": true, "maps.Insert": true,
	"slices.Reverse": true, "slices.Sort": true, "slices.SortFunc": true, "slices.SortStableFunc": true,
	"sort.Ints": true, "sort.Slice": true, "sort.SliceStable": true, "sort.Strings": true,
}

// targets returns the expressions that n writes to.
func (p *checkedPackage) targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
		}
	case *ast.CallExpr:
		if p.writesInPlace(n) {
			return []ast.Expr{&ast.IndexExpr{X: n.Args[0]}}
		}
	}
	return nil
}

// writesInPlace reports whether a call writes to the elements of its first argument.
func (p *checkedPackage) writesInPlace(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	switch fn := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		_, builtin := p.info.Uses[fn].(*types.Builtin)
		return builtin && slices.Contains([]string{"clear", "copy", "delete"}, fn.Name)
	case *ast.SelectorExpr:
		used, ok := p.info.Uses[fn.Sel].(*types.Func)
		return ok && used.Pkg() != nil && inPlace[used.Pkg().Path()+"."+used.Name()]
	}
	return false
}

// owners returns the structs that change when target is written to; there are none if what holds them is fresh.
func (p *checkedPackage) owners(target ast.Expr, fresh func(ast.Expr) bool) []string {
	var owners []string
	add := func(t types.Type) {
		if name, ok := structOf(t); ok {
			owners = append(owners, name)
		}
	}
	if star, ok := ast.Unparen(target).(*ast.StarExpr); ok {
		add(p.info.TypeOf(star.X))
	}
	for e := target; ; {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			s := p.info.Selections[x]
			if s == nil {
				return owners // a variable of a package
			}
			holders, hop := holders(s)
			for _, h := range holders {
				add(h)
			}
			switch outermost := len(holders) == len(s.Index()); {
			case hop && outermost && fresh(x.X):
				return nil
			case hop:
				return owners
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			if fresh(x.X) {
				return nil
			}
			return owners
		default:
			if fresh(e) {
				return nil
			}
			return owners
		}
	}
}

// holders returns the types of the structs that a selected field stands in, from the innermost embedded one outwards; hop
// reports whether a pointer was followed, beyond which nothing changes.
func holders(s *types.Selection) (all []types.Type, hop bool) {
	t := s.Recv()
	var path []types.Type
	for _, i := range s.Index() {
		path = append(path, t)
		if st, ok := pointee(t).Underlying().(*types.Struct); ok && i < st.NumFields() {
			t = st.Field(i).Type()
		}
	}
	for _, t := range slices.Backward(path) {
		all = append(all, t)
		if _, ok := t.Underlying().(*types.Pointer); ok {
			return all, true
		}
	}
	return all, false
}

func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}
