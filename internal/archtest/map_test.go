package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the map of packages into ARCHITECTURE.md")

const (
	mapBegin = "<!-- The map is written by go test ./internal/archtest -run TestMap -update -->\n```\n"
	mapEnd   = "```\n<!-- end of the map -->\n"
)

// The map in ARCHITECTURE.md has a line for every package outside bench: the first clause of its package comment. Packages
// stand under the group that they belong to.
func TestMap(t *testing.T) {
	const name = top + "/ARCHITECTURE.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(page, []byte(mapBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(mapEnd))
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md has no map between %q and %q", mapBegin, mapEnd)
	}
	want := slices.Concat(before, []byte(mapBegin), drawMap(t), []byte(mapEnd), after)
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want) {
		t.Error("the map in ARCHITECTURE.md is out of date: go test ./internal/archtest -run TestMap -update writes it")
	}
}

// drawMap returns the lines of the map, by group and by path.
func drawMap(t *testing.T) []byte {
	t.Helper()
	clauses := map[string]map[string]string{} // :: group → package below it → clause
	for _, f := range source(t, func(f sourceFile) bool { return f.ast.Doc != nil && !strings.Contains(f.name, "testdata") }) {
		if clause := clauseOf(f.ast); clause != "" && !f.isTest {
			g, _ := groupOf(f.pkg)
			folder := g.folder
			if clauses[folder] == nil {
				clauses[folder] = map[string]string{}
			}
			clauses[folder][f.pkg] = clause
		}
	}
	var lines bytes.Buffer
	for _, g := range groups {
		if g.folder == "bench" {
			continue
		}
		fmt.Fprintf(&lines, "%s: %s\n", map[bool]string{true: "the root", false: g.folder}[g.folder == root], g.what)
		var all []string
		for pkg := range clauses[g.folder] {
			all = append(all, pkg)
		}
		slices.Sort(all)
		for _, pkg := range all {
			below := strings.TrimPrefix(pkg, g.folder+"/")
			if pkg == g.folder {
				below = path.Base(pkg)
				if pkg == root {
					below = "corral"
				}
			}
			fmt.Fprintf(&lines, "  %-22s %s\n", below, clauses[g.folder][pkg])
		}
	}
	return lines.Bytes()
}

var (
	introduction = regexp.MustCompile(`^(Package|Command) [a-z0-9-]+ `)
	clauseEnd    = regexp.MustCompile(`[:;]( |$)| \(|\.$`)
)

// clauseOf returns the first clause of a package comment, without the name of the package.
func clauseOf(file *ast.File) string {
	text := introduction.ReplaceAllString((&doc.Package{}).Synopsis(file.Doc.Text()), "")
	if at := clauseEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return text
}
