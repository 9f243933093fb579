package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A checkedPackage is a package of ours with the types of its expressions.
type checkedPackage struct {
	pkg   string // its folder
	files []*ast.File
	info  *types.Info
	types *types.Package
}

// A checker type-checks our packages from the source that tree has parsed, each once and after its imports. It reads the types
// of other modules and of the standard library from export data, which the go command takes from its cache.
type checker struct {
	files   map[string][]*ast.File // :: folder → production files for this platform
	others  types.Importer
	checked map[string]*checkedPackage // :: folder → nil while it is being checked
}

// checked type-checks the production code of the repository, once, in the order of its folders.
var checked = sync.OnceValues(func() ([]*checkedPackage, error) {
	all, err := tree()
	if err != nil {
		return nil, err
	}
	c := &checker{files: map[string][]*ast.File{}, checked: map[string]*checkedPackage{}}
	external := map[string]bool{}
	for _, f := range all {
		fits, err := build.Default.MatchFile(filepath.Join(top, f.pkg), path.Base(f.name))
		if err != nil {
			return nil, err
		}
		if f.isTest || !fits {
			continue
		}
		c.files[f.pkg] = append(c.files[f.pkg], f.ast)
		_, others := f.imports()
		for _, p := range others {
			external[p] = p != "unsafe"
		}
	}
	maps.DeleteFunc(external, func(_ string, listed bool) bool { return !listed })
	if c.others, err = exportData(slices.Sorted(maps.Keys(external))); err != nil {
		return nil, err
	}
	var done []*checkedPackage
	for _, pkg := range slices.Sorted(maps.Keys(c.files)) {
		if _, err := c.check(pkg); err != nil {
			return nil, err
		}
		done = append(done, c.checked[pkg])
	}
	return done, nil
})

// packagesOf returns the checked packages of the repository.
func packagesOf(t *testing.T) []*checkedPackage {
	t.Helper()
	all, err := checked()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exportData returns an importer of packages that are not ours. The compiler's export data is complete: nothing has to be
// read of what these packages import.
func exportData(paths []string) (types.Importer, error) {
	args := append([]string{"list", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)
	cmd := exec.Command("go", args...)
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	archives := map[string]string{}
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		archives[importPath] = file
	}
	return importer.ForCompiler(fileSet, "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(archives[importPath])
	}), nil
}

// Import implements types.Importer.
func (c *checker) Import(importPath string) (*types.Package, error) {
	if folder, ok := folderOf(importPath); ok {
		return c.check(folder)
	}
	return c.others.Import(importPath)
}

func (c *checker) check(folder string) (*types.Package, error) {
	p, begun := c.checked[folder]
	switch {
	case begun && p == nil:
		return nil, fmt.Errorf("%s imports itself", folder)
	case begun:
		return p.types, nil
	case len(c.files[folder]) == 0:
		return nil, fmt.Errorf("%s has no files", folder)
	}
	c.checked[folder] = nil
	p = &checkedPackage{pkg: folder, files: c.files[folder], info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	config := types.Config{Importer: c, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	var err error
	if p.types, err = config.Check(path.Join(module, folder), fileSet, p.files, p.info); err != nil {
		return nil, err
	}
	c.checked[folder] = p
	return p.types, nil
}

// folderOf returns the folder of a package of ours; ok is false for the packages of others.
func folderOf(importPath string) (folder string, ok bool) {
	if importPath == module {
		return root, true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// structOf returns the struct type of ours that a value of type t is, or points to, as "PACKAGE.NAME"; ok is false for other
// types, and for structs without a name.
func structOf(t types.Type) (name string, ok bool) {
	if p, isPointer := types.Unalias(t).(*types.Pointer); isPointer {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return "", false
	}
	if _, ok = named.Underlying().(*types.Struct); !ok {
		return "", false
	}
	folder, ok := folderOf(named.Obj().Pkg().Path())
	return folder + "." + named.Obj().Name(), ok
}
