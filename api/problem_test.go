package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// declaredKinds reads the kinds from the root package's source, so that a new kind cannot be missed.
func declaredKinds(t *testing.T) []corral.Kind {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []corral.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Kind" {
			return true
		}
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, corral.Kind(kind))
		return true
	})
	return kinds
}

func TestEveryKindHasOneRow(t *testing.T) {
	t.Parallel()
	var rows []corral.Kind
	for _, r := range table {
		rows = append(rows, r.kind)
	}
	if diff := cmp.Diff(declaredKinds(t), rows); diff != "" {
		t.Errorf("kinds of ../error.go and of the table differ (-error.go +table):\n%s", diff)
	}
}

func TestKindSurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, r := range table {
		sent := ProblemOf(fmt.Errorf("creating a glidein: %w", corral.ErrorAt(r.kind, "hosts", "0 is too few")))
		wire, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var got Problem
		if err := json.Unmarshal(wire, &got); err != nil {
			t.Fatal(err)
		}
		var e *corral.Error
		if !errors.As(error(&got), &e) || e.Kind != r.kind || e.Place != "hosts" {
			t.Errorf("%s came back as %+v", r.kind, e)
		}
		if sent.Status != r.status || ExitCode(&got) != r.exit {
			t.Errorf("%s: status %d, exit code %d, want %d, %d", r.kind, sent.Status, ExitCode(&got), r.status, r.exit)
		}
	}
}

func TestProblemOf(t *testing.T) {
	t.Parallel()
	secret := ProblemOf(errors.New("open /secret/path: no such file"))
	if secret.Kind != corral.Internal || strings.Contains(secret.Detail, "secret") {
		t.Errorf("an internal error shows %q", secret.Detail)
	}
	given := &Problem{Detail: "as it came"}
	if got := ProblemOf(fmt.Errorf("waiting: %w", given)); got != given {
		t.Errorf("ProblemOf(a wrapped problem) = %+v, want that problem", got)
	}
	if got := ProblemOf(corral.ErrorAt(corral.Invalid, "hosts", "0 is too few")).Detail; got != "hosts: 0 is too few" {
		t.Errorf("detail = %q", got)
	}
	if ExitCode(nil) != 0 || ExitCode(errors.New("odd")) != 1 {
		t.Error("ExitCode: want 0 for nil and 1 for an error without kind")
	}
}

func TestTypesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]corral.Kind{}
	for _, r := range table {
		if other, ok := seen[r.typeURI()]; ok {
			t.Errorf("%s and %s have the type %s", r.kind, other, r.typeURI())
		}
		seen[r.typeURI()] = r.kind
	}
}

// TestDocumentedTable compares the table with the table in docs/api.md, which is copied from api-head.md in the
// server's folder.
func TestDocumentedTable(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(doc)) {
		if strings.HasPrefix(line, "| <a id=") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, r := range table {
		want = append(want, fmt.Sprintf(`| <a id="%s"></a>`+"`%s` | %d | %d | %s |", r.kind, r.kind, r.status, r.exit, r.title))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table of docs/api.md (-code +document):\n%s", diff)
	}
}
