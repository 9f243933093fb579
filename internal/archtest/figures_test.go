package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// minComments is the minimum share of lines of production code that hold a comment, in percent. Below it, readers have to
// guess too much of how things work, and why.
const minComments = 15

// A figure counts the lines of some files.
type figure struct {
	all      int
	code     int // hold code
	comments int // hold a comment, behind code or alone
}

func (f *figure) add(g figure) {
	f.all, f.code, f.comments = f.all+g.all, f.code+g.code, f.comments+g.comments
}

func (f figure) share() float64 { return 100 * float64(f.comments) / float64(max(1, f.all)) }

func (f sourceFile) figure() figure {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(f.name, -1, len(f.text))
	s.Init(file, f.text, nil, scanner.ScanComments)
	code, comments := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return figure{lines(f.ast), len(code), len(comments)}
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner's own
		}
		where := code
		if tok == token.COMMENT {
			where = comments
		}
		for line := range strings.Count(literal, "\n") + 1 {
			where[file.Line(pos)+line] = true
		}
	}
}

// TestFigures prints the figures of the house, see docs/bench or a review; go test -v shows them.
func TestFigures(t *testing.T) {
	var total figure
	packages := map[string]*figure{}
	var functions []int
	for _, f := range source(t, production) {
		if packages[f.pkg] == nil {
			packages[f.pkg] = &figure{}
		}
		packages[f.pkg].add(f.figure())
		total.add(f.figure())
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				functions = append(functions, lines(fn))
			}
		}
	}
	slices.Sort(functions)
	t.Logf("%d lines, of code %d, with a comment %d (%.1f %%)", total.all, total.code, total.comments, total.share())
	t.Logf("%d functions: median %d lines, 90th percentile %d, longest %d",
		len(functions), functions[len(functions)/2], functions[len(functions)*9/10], functions[len(functions)-1])
	largest(t, "structs by functions that assign to their fields", mutators(t), func(by map[string]bool) int { return len(by) })
	largest(t, "packages by lines", packages, func(f *figure) int { return f.all })
	largest(t, "packages by code without comments", packages, func(f *figure) int { return f.code - f.comments })
	if total.share() < minComments {
		t.Errorf("%.1f %% of the lines hold a comment, budget %d", total.share(), minComments)
	}
}

// largest prints the 15 largest of all.
func largest[T any](t *testing.T, what string, all map[string]T, size func(T) int) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(all[b]), size(all[a])), cmp.Compare(a, b))
	})
	var said []string
	for _, key := range keys[:min(15, len(keys))] {
		said = append(said, fmt.Sprintf("%s %d", key, size(all[key])))
	}
	t.Logf("%s: %s", what, strings.Join(said, ", "))
}
