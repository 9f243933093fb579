package archtest

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A home says which packages may import a third-party module.
type home struct {
	packages []string // production code
	tests    bool     // every test may, and test kits
	why      string
}

var homes = map[string]home{
	"github.com/cockroachdb/datadriven":     {tests: true, why: "transcripts: commands and what they lead to, read as stories"},
	"github.com/getkin/kin-openapi":         {tests: true, why: "checks openapi.yaml against the routes that exist"},
	"github.com/goccy/go-yaml":              {packages: []string{"internal/cli"}, why: "-o yaml and -f FILE are matters of the command line; the wire is JSON"},
	"github.com/google/go-cmp":              {tests: true, why: "says how two values differ"},
	"github.com/hashicorp/go-retryablehttp": {packages: []string{"api", "internal/kit/retry", "staging"}, why: "those that speak HTTP as a client"},
	"github.com/hashicorp/yamux":            {packages: []string{"broker/relay"}, why: "many connections over one; both ends are ours"},
	"github.com/jedib0t/go-pretty/v6":       {packages: []string{"internal/cli"}, why: "tables for people"},
	"github.com/jlaffaye/ftp":               {packages: []string{"staging/ftp"}, why: "FTP, which the pilot must not carry"},
	"github.com/labstack/echo/v4":           {packages: []string{"internal/service/rest"}, why: "routes; one home, so that the next major version is a local change"},
	"github.com/pkg/sftp":                   {packages: []string{"staging/sftp"}, why: "SFTP over a channel of the ssh transport"},
	"github.com/prometheus/client_golang":   {packages: []string{"internal/service/metrics"}, why: "what Prometheus scrapes"},
	"github.com/rogpeppe/go-internal":       {tests: true, why: "scripts that run the programs"},
	"github.com/tsenart/vegeta/v12":         {packages: []string{"bench/load"}, why: "requests at a rate that is kept, whatever the answers take"},
	"github.com/urfave/cli/v2":              {packages: []string{"internal/cli", "cmd/corrald", "cmd/pilot"}, why: "flags and help belong to programs"},
	"golang.org/x/crypto":                   {packages: []string{"gridsite/ssh"}, why: "the ssh transport"},
	"golang.org/x/sys":                      {packages: []string{"broker/relay", "internal/cli", "cmd/corrald", "condor", "internal/embedded/executor", "internal/kit/atomicfile", "internal/service/personal", "internal/node/process", "internal/embedded/ptrace", "internal/node/runas", "internal/shim/slurm", "internal/shim/slurm/step", "staging"}, why: "system calls that package syscall lacks: locks, pidfd, prctl, statfs, waitid, flags of files, names of signals, a terminal that hides, ptrace"},
	"golang.org/x/term":                     {packages: []string{"internal/cli"}, why: "is this a terminal, how wide; answers that it does not show"},
	"gonum.org/v1/plot":                     {packages: []string{"internal/cli/plot"}, why: "diagrams as PNG and SVG"},
	"modernc.org/libc":                      {packages: []string{"internal/store"}, why: "the C of SQLite: how it is set up"},
	"modernc.org/sqlite":                    {packages: []string{"internal/store"}, why: "SQLite without cgo"},
	"pgregory.net/rapid":                    {tests: true, why: "properties, with shrinking"},
}

// testKits are production packages that exist for tests: they may import what tests may.
var testKits = []string{"gridsite/gridsitetest", "internal/kit/datasets", "internal/store/storetest"}

// direct returns the modules that a go.mod requires for code of ours.
func direct(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(top, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var modules []string
	inBlock := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		switch {
		case line == "require (":
			inBlock = true
		case line == ")":
			inBlock = false
		case strings.HasSuffix(line, "// indirect") || len(fields) < 2:
		case inBlock || strings.HasPrefix(line, "require "):
			modules = append(modules, fields[0])
		}
	}
	return modules
}

func TestEveryModuleHasAHome(t *testing.T) {
	required := slices.Concat(direct(t, "go.mod"), direct(t, "bench/go.mod"))
	for _, m := range required {
		if _, ok := homes[m]; !ok && m != module {
			t.Errorf("a go.mod requires %s, which has no home in homes (modules_test.go)", m)
		}
	}
	for m, h := range homes {
		if !slices.Contains(required, m) {
			t.Errorf("homes names %s, which no go.mod requires", m)
		}
		if h.why == "" {
			t.Errorf("homes: %s has no reason", m)
		}
	}
}

func TestModulesStayAtHome(t *testing.T) {
	unused := map[string]bool{} // :: "module package" of homes
	for m, h := range homes {
		for _, pkg := range h.packages {
			unused[m+" "+pkg] = true
		}
	}
	for _, f := range source(t, func(sourceFile) bool { return true }) {
		_, others := f.imports()
		for _, p := range others {
			m, ok := moduleOf(p)
			if !ok {
				continue
			}
			delete(unused, m+" "+f.pkg)
			if !homes[m].admits(f) {
				t.Errorf("%s imports %s, whose home is elsewhere: %s (modules_test.go)", f.name, p, homes[m].why)
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("home %s is not used any longer: remove it", entry)
	}
}

func (h home) admits(f sourceFile) bool {
	if slices.Contains(h.packages, f.pkg) {
		return true
	}
	return h.tests && (f.isTest || slices.Contains(testKits, f.pkg))
}

// moduleOf returns the third-party module of an import path; ok is false for the standard library. A
// path of no listed module is its own module, and has no home.
func moduleOf(importPath string) (m string, ok bool) {
	if first, _, _ := strings.Cut(importPath, "/"); !strings.Contains(first, ".") {
		return "", false
	}
	for m := range homes {
		if importPath == m || strings.HasPrefix(importPath, m+"/") {
			return m, true
		}
	}
	return importPath, true
}
