package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"testing"
)

// A typeSize is the size of one type other than an interface.
type typeSize struct {
	pkg, name string
	fields    int
	own       map[string]bool // the names of its methods
	embeds    []string        // types of ours, as "PACKAGE.NAME"
}

// typeSizes measures the types of the production code, by "PACKAGE.NAME".
func typeSizes(t *testing.T) map[string]*typeSize {
	t.Helper()
	sizes := map[string]*typeSize{}
	get := func(pkg, name string) *typeSize {
		key := pkg + "." + name
		if sizes[key] == nil {
			sizes[key] = &typeSize{pkg: pkg, name: name, own: map[string]bool{}}
		}
		return sizes[key]
	}
	for _, f := range source(t, production) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				get(f.pkg, baseName(fn.Recv.List[0].Type)).own[fn.Name.Name] = true
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				size := get(f.pkg, spec.Name.Name)
				size.fields = s.Fields.NumFields()
				for _, field := range s.Fields.List {
					if len(field.Names) == 0 {
						size.embeds = append(size.embeds, f.qualified(field.Type))
					}
				}
			}
			return true
		})
	}
	return sizes
}

// methods returns the names of a type's methods, those of what it embeds included.
func (s *typeSize) methods(all map[string]*typeSize) map[string]bool {
	names := maps.Clone(s.own)
	for _, key := range s.embeds {
		if e := all[key]; e != nil && e != s {
			maps.Copy(names, e.methods(all))
		}
	}
	return names
}

// typeExcesses lists the types that are over their budgets.
func typeExcesses(t *testing.T) []excess {
	t.Helper()
	sizes := typeSizes(t)
	var all []excess
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[key]
		if n := len(s.methods(sizes)); n > maxMethods {
			all = append(all, excess{"type " + key, fmt.Sprintf("type %s has %d methods, budget %d", key, n, maxMethods)})
		}
		if s.fields > maxFields && s.pkg != root {
			all = append(all, excess{"type " + key, fmt.Sprintf("type %s has %d fields, budget %d", key, s.fields, maxFields)})
		}
	}
	return all
}

// packageExcesses lists the packages that are over their budget.
func packageExcesses(t *testing.T) []excess {
	t.Helper()
	size := map[string]int{}
	for _, f := range source(t, production) {
		size[f.pkg] += lines(f.ast)
	}
	var all []excess
	for _, pkg := range slices.Sorted(maps.Keys(size)) {
		if n := size[pkg]; n > maxPackageLines {
			all = append(all, excess{"package " + pkg, fmt.Sprintf("package %s has %d lines, budget %d", pkg, n, maxPackageLines)})
		}
	}
	return all
}

// baseName is the name of a receiver's type, without pointer and parameters.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// qualified names an embedded type as the keys of typeSizes do; a type of others is none of them.
func (f sourceFile) qualified(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return f.pkg + "." + baseName(e)
	}
	x, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	ours, _ := f.imports()
	for _, p := range ours {
		if path.Base(p) == x.Name || p == root && x.Name == path.Base(module) {
			return p + "." + selector.Sel.Name
		}
	}
	return ""
}
