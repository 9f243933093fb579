package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/corral-pilot/corral"
	top    = "../.." // the repository, from here
	root   = "."     // how the tables call the package at the top
)

// A sourceFile is one Go file of the repository.
type sourceFile struct {
	name   string // below the top, with slashes
	pkg    string // its folder
	isTest bool
	text   []byte
	ast    *ast.File
}

var fileSet = token.NewFileSet()

// tree parses every Go file of the repository, once.
var tree = sync.OnceValues(func() ([]sourceFile, error) {
	var files []sourceFile
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != top && notOurs(d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fileSet, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		files = append(files, sourceFile{below, path.Dir(below), strings.HasSuffix(below, "_test.go"), text, parsed})
		return nil
	})
	return files, err
})

// notOurs reports whether a folder holds no packages of ours, as the go command sees it.
func notOurs(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") ||
		slices.Contains([]string{"testdata", "bin", "build"}, folder)
}

// source returns the files for which keep holds; it is an error if there is none.
func source(t *testing.T, keep func(f sourceFile) bool) []sourceFile {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	var kept []sourceFile
	for _, f := range all {
		if keep(f) {
			kept = append(kept, f)
		}
	}
	if len(kept) == 0 {
		t.Fatal("there is no such file: does this test look in the right place?")
	}
	return kept
}

func production(f sourceFile) bool { return !f.isTest }

// imports returns the paths that f imports; our own are given as folders.
func (f sourceFile) imports() (ours, others []string) {
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // unreachable: the parser has checked it
		}
		switch below, ok := strings.CutPrefix(p, module+"/"); {
		case p == module:
			ours = append(ours, root)
		case ok:
			ours = append(ours, below)
		default:
			others = append(others, p)
		}
	}
	return ours, others
}

// at names a place in the source.
func at(n ast.Node) string {
	p := fileSet.Position(n.Pos())
	below, err := filepath.Rel(top, p.Filename)
	if err != nil {
		below = p.Filename // unreachable: tree made it from top
	}
	return filepath.ToSlash(below) + ":" + strconv.Itoa(p.Line)
}

// lines counts the source lines of n.
func lines(n ast.Node) int {
	return fileSet.Position(n.End()).Line - fileSet.Position(n.Pos()).Line + 1
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
