package programs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// machine makes a folder with the programs that the Makefile needs besides Go, and a go command that prints answer to
// go version; an empty answer means no go command. The folder is the whole PATH.
func machine(t *testing.T, answer string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for _, name := range []string{"awk", "cat", "dirname", "git", "grep", "id", "make", "paste", "sed", "sh", "sort", "tail"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if answer != "" {
		script := "#!/bin/sh\ncase $1 in version) " + answer + " ;; env) echo local ;; *) exit 9 ;; esac\n"
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// makeTest runs make for a target without executing any commands, and returns the standard error and the exit status.
func makeTest(t *testing.T, bin, target string) (stderr string, status int) {
	t.Helper()
	top, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "make"), "-n", target)
	cmd.Dir, cmd.Env = top, []string{"PATH=" + bin}
	var said strings.Builder
	cmd.Stderr = &said
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(said.String(), bin, "BIN"), cmd.ProcessState.ExitCode()
}

// With a Go that cannot build the repository, make prints one sentence: the required version, the version found, and
// the remedy.
func TestMakeNamesTheGoItNeeds(t *testing.T) {
	t.Parallel()
	needed := goOfModule(t)
	need := "Corral needs Go " + needed + " or newer, and "
	for name, c := range map[string]struct{ answer, want string }{
		"none": {"", need + "there is no go in PATH: install it from https://go.dev/dl/"},
		"Debian 12's": {"echo go version go1.19.8 linux/amd64",
			need + "BIN/go is Go 1.19.8: install a newer one from https://go.dev/dl/"},
		"one that may not fetch another": {"echo go version go1.25.9 linux/amd64",
			need + "BIN/go is Go 1.25.9, which GOTOOLCHAIN=local keeps from fetching a newer one: " +
				"set GOTOOLCHAIN=auto, or install Go from https://go.dev/dl/"},
		"a candidate of that version": {"echo go version go" + strings.TrimSuffix(needed, ".0") + "rc1 linux/amd64",
			need + "BIN/go is Go " + strings.TrimSuffix(needed, ".0") + "rc1, which GOTOOLCHAIN=local keeps from fetching a newer one: " +
				"set GOTOOLCHAIN=auto, or install Go from https://go.dev/dl/"},
		"one that cannot fetch another": {"echo go: downloading go" + needed + " >&2; echo go: toolchain not available >&2; exit 1",
			need + `"go version" fails (go: toolchain not available): install Go from https://go.dev/dl/`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, status := makeTest(t, machine(t, c.answer), "test")
			place := regexp.MustCompile(`^Makefile:\d+: \*\*\* `)
			if got := place.ReplaceAllString(stderr, ""); got != c.want+".  Stop.\n" || status != 2 {
				t.Errorf("status %d, want 2; stderr\n got %s\nwant %s", status, got, c.want)
			}
		})
	}
}

// A newer Go is accepted, and so is a Go that has fetched the required version; make help needs no Go.
func TestMakeAcceptsNewerGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, target string }{
		{"echo go version go" + goOfModule(t) + " linux/amd64", "test"},
		{"echo go: downloading it >&2; echo go version go1.99.1 linux/arm64", "test"},
		{"echo go version go1.99rc2 linux/amd64", "test"},
		{"echo go version devel go1.99-1a2b3c4d Mon Jan 1 00:00:00 2029 +0000 linux/amd64", "test"},
		{"echo go version go2.0 linux/amd64", "test"},
		{"", "help"},
		{"", "clean"},
	} {
		t.Run(c.answer+" "+c.target, func(t *testing.T) {
			t.Parallel()
			if stderr, status := makeTest(t, machine(t, c.answer), c.target); stderr != "" || status != 0 {
				t.Errorf("status %d, want 0; stderr\n%s", status, stderr)
			}
		})
	}
}

// scripts/fresh checks its requirements before it does anything, and stops if one is missing.
func TestFreshChecksRequirementsFirst(t *testing.T) {
	t.Parallel()
	top, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, folder := machine(t, "echo go version go1.19.8 linux/amd64"), filepath.Join(t.TempDir(), "fresh")
	cmd := exec.Command(filepath.Join(top, "scripts/fresh"))
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CORRAL_FRESH="+folder)
	said, err := cmd.CombinedOutput()
	lines := strings.Split(string(said), "\n")
	if cmd.ProcessState.ExitCode() != 1 || lines[0] != "scripts/fresh needs, beyond a bare Debian:" {
		t.Errorf("%v, want status 1; output\n%s", err, said)
	}
	for _, need := range []string{"root", "namespaces", "programs", "debootstrap", "disk", "memory"} {
		if !regexp.MustCompile(`(?m)^  (ok     |MISSING)  ` + need + ` +\S`).Match(said) {
			t.Errorf("there is no line about %s in\n%s", need, said)
		}
	}
	if want := "  MISSING  Go          Corral needs Go " + goOfModule(t) + " or newer, and " + bin + "/go is Go 1.19.8: "; !strings.Contains(string(said), want) {
		t.Errorf("want %q in\n%s", want, said)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want none", folder, err)
	}
}

// goOfModule is the version of Go that go.mod requires.
func goOfModule(t *testing.T) string {
	t.Helper()
	return firstMatch(t, "go.mod", `(?m)^go ([0-9.]+)$`)
}

// The README names the version that go.mod requires.
func TestReadmeNamesTheGoItNeeds(t *testing.T) {
	t.Parallel()
	if readme := firstMatch(t, "README.md", `\[Go\]\(\S+\) ([0-9.]+[0-9]) or newer`); readme != goOfModule(t) && readme+".0" != goOfModule(t) {
		t.Errorf("README.md says Go %s, go.mod %s", readme, goOfModule(t))
	}
}

// firstMatch returns the text that the first group of a pattern matches in a file of the repository.
func firstMatch(t *testing.T, file, pattern string) string {
	t.Helper()
	top, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, file))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return string(match[1])
}
