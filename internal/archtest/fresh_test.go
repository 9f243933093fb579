package archtest

import (
	"go/ast"
	"go/types"
	"slices"
)

// isFresh reports whether e is a value that a function has made itself, so that nothing else sees what is assigned to it.
// A variable that is under consideration already is in seen: list = append(list, x) is as fresh as list is otherwise.
func (p *checkedPackage) isFresh(function ast.Node, e ast.Expr, seen []types.Object) bool {
	fresh := func(e ast.Expr) bool { return p.isFresh(function, e, seen) }
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr: // &x; no other operator has an operand that holds anything
		return fresh(e.X)
	case *ast.StarExpr:
		return fresh(e.X)
	case *ast.SelectorExpr:
		return isCopied(p.info.TypeOf(e)) && p.info.Selections[e] != nil && fresh(e.X)
	case *ast.IndexExpr:
		return isCopied(p.info.TypeOf(e)) && fresh(e.X)
	case *ast.SliceExpr:
		return fresh(e.X)
	case *ast.CallExpr:
		return p.makes(e, fresh)
	case *ast.Ident:
		return p.info.Types[e].IsNil() || p.isFreshVariable(function, p.info.ObjectOf(e), seen)
	}
	return false
}

// makes reports whether a call returns a new value. Of functions, only those of the language and clones are known to.
func (p *checkedPackage) makes(call *ast.CallExpr, fresh func(ast.Expr) bool) bool {
	if p.info.Types[call.Fun].IsType() { // a conversion
		return fresh(call.Args[0])
	}
	switch fn := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		if _, builtin := p.info.Uses[fn].(*types.Builtin); builtin {
			return fn.Name == "new" || fn.Name == "make" || fn.Name == "append" && fresh(call.Args[0])
		}
	case *ast.SelectorExpr:
		used, ok := p.info.Uses[fn.Sel].(*types.Func)
		return ok && used.Name() == "Clone" && slices.Contains([]string{"maps", "slices"}, used.Pkg().Path())
	}
	return false
}

// isFreshVariable reports whether v is a variable of the function itself, and either holds a copy or is assigned nothing but
// fresh values.
func (p *checkedPackage) isFreshVariable(function ast.Node, v types.Object, seen []types.Object) bool {
	if v == nil || !isLocal(function, v) {
		return false
	}
	if isCopied(v.Type()) || slices.Contains(seen, v) {
		return true
	}
	fresh := true
	ast.Inspect(function, func(n ast.Node) bool {
		for _, value := range p.assigned(n, v) {
			fresh = fresh && value != nil && p.isFresh(function, value, append(slices.Clip(seen), v))
		}
		return fresh
	})
	return fresh
}

// isLocal reports whether a variable is declared in the body of a function, or is a result of it.
func isLocal(function ast.Node, v types.Object) bool {
	within := func(n ast.Node) bool { return n.Pos() <= v.Pos() && v.Pos() < n.End() }
	switch fn := function.(type) {
	case *ast.FuncDecl:
		return within(fn.Body) || fn.Type.Results != nil && within(fn.Type.Results)
	case *ast.FuncLit:
		return within(fn.Body) || fn.Type.Results != nil && within(fn.Type.Results)
	}
	return false
}

// isCopied reports whether the assignment of a value of this type copies what it holds: a struct or an array.
func isCopied(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	}
	return false
}

// assigned returns the values that n assigns to v; nil is one that is not an expression by itself, of a range or of a
// call with several results.
func (p *checkedPackage) assigned(n ast.Node, v types.Object) []ast.Expr {
	var left, right []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		left, right = n.Lhs, n.Rhs
	case *ast.ValueSpec:
		if len(n.Values) == 0 {
			return nil // nil, until it is assigned to
		}
		for _, name := range n.Names {
			left = append(left, name)
		}
		right = n.Values
	case *ast.RangeStmt:
		left = []ast.Expr{n.Key, n.Value}
	}
	var values []ast.Expr
	for i, e := range left {
		name, ok := e.(*ast.Ident)
		switch {
		case !ok || p.info.ObjectOf(name) != v:
		case len(right) == len(left):
			values = append(values, right[i])
		default:
			values = append(values, nil)
		}
	}
	return values
}
