package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/internal/xdg"
)

// Every setting is a flag, and a variable whose name follows from the flag's; another may be shared with
// corral.
func TestEverySettingHasAVariable(t *testing.T) {
	t.Parallel()
	for _, f := range flags(xdg.Layout{}) {
		name := f.Names()[0]
		if name == "check-config" { // it is no setting
			continue
		}
		want := "CORRALD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if got := f.(cli.DocGenerationFlag).GetEnvVars(); !slices.Contains(got, want) {
			t.Errorf("the variables of --%s are %v, want %s", name, got, want)
		}
		if f.(cli.DocGenerationFlag).GetUsage() == "" {
			t.Errorf("--%s has no usage", name)
		}
	}
}

// docs/operations.md has a row for each flag.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flags(xdg.Layout{}) {
		if row := "| `--" + f.Names()[0] + "`"; !strings.Contains(string(doc), "\n"+row) {
			t.Errorf("docs/operations.md has no row %s", row)
		}
	}
}
