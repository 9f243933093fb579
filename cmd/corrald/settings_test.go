package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/internal/kit/xdg"
)

// serviceLayout is the layout in the package's settings.
var serviceLayout = xdg.Layout{State: "/var/lib/corral/state", Cache: "/var/cache/corral", Data: "/var/lib/corral/data",
	Socket: "/run/corral/corrald.sock", Worker: "/run/corral/worker.sock"}

// settingsOf returns the flags that are settings, by name.
func settingsOf(l xdg.Layout) map[string]cli.DocGenerationFlag {
	all := map[string]cli.DocGenerationFlag{}
	for _, f := range flags(l) {
		// check-config is not a setting, and faults is only for tests.
		if name := f.Names()[0]; name != "check-config" && name != "faults" {
			all[name] = f.(cli.DocGenerationFlag)
		}
	}
	return all
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// firsts returns the texts that the first group of a pattern matches, sorted and without duplicates.
func firsts(pattern, in string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(in, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Every setting is a flag and a variable whose name follows from the flag's; a second variable may be shared with
// corral.
func TestEverySettingHasAVariable(t *testing.T) {
	t.Parallel()
	for name, f := range settingsOf(xdg.Layout{}) {
		want := "CORRALD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if got := f.GetEnvVars(); !slices.Contains(got, want) {
			t.Errorf("the variables of --%s are %v, want %s", name, got, want)
		}
		if f.GetUsage() == "" {
			t.Errorf("--%s has no usage", name)
		}
	}
}

// docs/operations.md has a row for each flag, and no other rows.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(text(t, "../../docs/operations.md"), "\n## Settings\n")
	table, _, _ = strings.Cut(table, "\n## ")
	known := append(slices.Collect(maps.Keys(settingsOf(xdg.Layout{}))), "check-config")
	slices.Sort(known)
	if diff := cmp.Diff(known, firsts("\n\\| `--([a-z-]+)`", table)); diff != "" {
		t.Errorf("flags and the rows of docs/operations.md differ (-flags +rows):\n%s", diff)
	}
}

// The package's settings list each flag that a service may set, with its default value if it has one. The uncommented
// settings differ from their defaults.
func TestEverySettingIsInTheService(t *testing.T) {
	t.Parallel()
	known := settingsOf(serviceLayout)
	delete(known, "run-as") // the unit sets the user
	sample := text(t, "../../service/corrald.env")
	for _, f := range known {
		variable := f.GetEnvVars()[0]
		line := regexp.MustCompile(`(?m)^#?` + variable + `=(.+)$`).FindStringSubmatch(sample)
		if line == nil {
			t.Errorf("service/corrald.env has no line for %s", variable)
			continue
		}
		value := strings.Trim(f.GetValue(), `"`) // the value of a list is quoted
		unset := slices.Contains([]string{"", "0", "[]"}, value)
		if !unset && line[1] != value {
			t.Errorf("service/corrald.env: %s=%s, and the default is %s", variable, line[1], f.GetValue())
		}
	}
}

// Each variable that is named in documentation and service files exists: it belongs to a flag, to xdg's lookup of
// corrald's files, or to the service's backups. Each existing variable is named.
func TestEveryVariableIsDocumented(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, f := range settingsOf(xdg.Layout{}) {
		for _, variable := range f.GetEnvVars() {
			known[variable] = true
		}
	}
	flags := maps.Clone(known)
	for _, variable := range firsts(`\$\{(CORRAL_[A-Z_]+)`, text(t, "../../service/backup")) {
		known[variable] = true
	}
	for _, variable := range firsts(`"(XDG_[A-Z_]+)"`, text(t, "../../internal/kit/xdg/xdg.go")) {
		known[variable] = true
	}
	operations := text(t, "../../docs/operations.md")
	for variable := range known {
		if !flags[variable] && !strings.Contains(operations, "`"+variable+"`") {
			t.Errorf("docs/operations.md does not name %s", variable)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../service/corrald.env", "../../service/corrald.service", "../../README.md") {
		for _, variable := range firsts(`\b((?:CORRALD|CORRAL_BACKUP|XDG)_[A-Z_]*[A-Z])\b`, text(t, page)) {
			if !known[variable] {
				t.Errorf("%s names %s, which nothing reads", page, variable)
			}
		}
	}
}
