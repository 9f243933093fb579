package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nouns is a package whose structs the examples change, and reach through.
const nouns = `package nouns

type Inner struct{ N int }

type Middle struct{ Inner Inner }

type Noun struct {
	Middle Middle
	M      map[string]int
	S      []Inner
	P      *Inner
}

func (n *Noun) Set(k string, v int) { n.M[k] = v }
`

// check type-checks packages of a few lines each, by folder, which import nothing but one another.
func check(t *testing.T, sources map[string]string) *checker {
	t.Helper()
	c := &checker{files: map[string][]*ast.File{}, others: importer.Default(), checked: map[string]*checkedPackage{}}
	for folder, text := range sources {
		f, err := parser.ParseFile(fileSet, path.Join(top, folder, "file.go"), text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.files[folder] = []*ast.File{f}
	}
	for folder := range sources {
		if _, err := c.check(folder); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestWhatChangesAStruct(t *testing.T) {
	for statements, want := range map[string]string{
		"n.P = nil":                         "Noun",
		"n.Middle.Inner.N++":                "Inner Middle Noun",
		"n.P.N += 1":                        "Inner",
		"n.M[``] = 1":                       "Noun",
		"n.S[0].N = 1":                      "Inner Noun",
		"n.S = append(n.S, nouns.Inner{})":  "Noun",
		"delete(n.M, ``)":                   "Noun",
		"clear(n.S)":                        "Noun",
		"copy(n.S[1:], n.S)":                "Noun",
		"for n.Middle.Inner.N = range 3 {}": "Inner Middle Noun",
		"*n = nouns.Noun{}":                 "Noun",
		"(*n).P = nil":                      "Noun",
		"w.P = nil":                         "Noun wide",
		"w.on.P = nil":                      "Noun wide",
		"v.P = nil":                         "Noun", // a parameter
		"s := n.S; s[0].N = 1":              "Inner",
		"p := n; p.P = nil":                 "Noun",
		"a := nouns.Noun{}; func() { a.P = nil }()":        "Noun", // captured
		"p := &nouns.Noun{}; p = n; p.P = nil":             "Noun",
		"for _, p := range []*nouns.Noun{n} { p.P = nil }": "Noun",

		"n.Set(``, 1)":                                                  "",
		"_ = nouns.Noun{P: n.P}":                                        "",
		"a := nouns.Noun{}; a.P = nil":                                  "",
		"a := *n; a.Middle.Inner.N = 1":                                 "",
		"p := &nouns.Noun{}; p.P = nil":                                 "",
		"p := new(nouns.Noun); p.M[``] = 1":                             "",
		"var s []nouns.Inner; s = append(s, nouns.Inner{}); s[0].N = 1": "",
		"s := make([]nouns.Inner, 3); for i := range s { s[i].N = i }":  "",
		"for _, i := range n.S { i.N = 1 }":                             "",
		"func() { a := nouns.Noun{}; a.P = nil }()":                     "",
		"p := &n.Middle; *p = nouns.Middle{}":                           "Middle", // and not Noun
	} {
		example := `package example
			import "` + module + `/nouns"
			type wide struct { nouns.Noun; on nouns.Noun }
			func change(n *nouns.Noun, v nouns.Noun, w *wide) {
				` + statements + "\n}"
		p := check(t, map[string]string{"nouns": nouns, "example": example})
		got := map[string]bool{}
		for _, d := range p.checked["example"].files[0].Decls {
			for _, name := range p.checked["example"].changes(d) {
				got[path.Ext(name)[1:]] = true
			}
		}
		if diff := cmp.Diff(strings.Fields(want), sortedKeys(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", statements, diff)
		}
	}
}

func TestWhatReachesThrough(t *testing.T) {
	for expression, want := range map[string]bool{
		"n.Middle.Inner":        false,
		"n.Middle.Inner.N":      true,
		"n.S[0].N":              false,
		"n.Of()[0].S[0].N":      false, // a call ends the row
		"o.on.Middle.Inner":     false, // the first step is to the package's own field
		"o.on.Middle.Inner.N":   true,
		"o.Middle.Inner.N":      true, // embedded
		"(*n.P).N":              false,
		"[]nouns.Noun{*n}[0].S": false,
	} {
		example := `package example
			import "` + module + `/nouns"
			type own struct { *nouns.Noun; on nouns.Noun }
			func read(n *nouns.Noun, o own) { _ = ` + expression + "\n}"
		sources := map[string]string{"nouns": nouns + "func (n *Noun) Of() []Noun { return nil }\n", "example": example}
		p := check(t, sources).checked["example"]
		if got := len(p.reaching(p.files[0])) > 0; got != want {
			t.Errorf("%s reaches through: %t, want %t", expression, got, want)
		}
	}
}

func sortedKeys(set map[string]bool) []string {
	keys := []string{}
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
