// Package programs links corral, corrald, pilot and corral-slurm for the tests that start them, once for each set of
// flags: the first test that needs the programs links them, and tests in other packages reuse them. The Debian package
// is built only for the one test that installs it.
//
// The Makefile defines how the programs are linked; they are placed below bin/test in the clone. Checking that they are
// up to date takes a fraction of a second, so every test does so, and no test runs a program that is older than its
// source.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

var (
	plain  = sync.OnceValues(func() (string, error) { return link("plain") })
	tested = sync.OnceValues(func() (string, error) { return link(tests) })
)

// Plain returns the folder with the programs as users build them.
func Plain() (dir string, err error) { return plain() }

// Tested returns the folder with the programs built like the calling test: corrald contains the race detector if the
// test does. The other programs are always built as users build them.
func Tested() (dir string, err error) { return tested() }

// CopyPilot copies the pilot to dir, for tests whose pilots run as a user who may not enter the clone, and returns the
// path of the copy.
func CopyPilot(dir string) (path string, err error) {
	from, err := Plain()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(filepath.Join(from, "pilot"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "pilot")
	return path, os.WriteFile(path, program, 0o755)
}

// link runs make to link the programs of one set. Only one process does this at a time.
func link(set string) (dir string, err error) {
	top, err := Root()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(top, "bin", "test", set)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	defer lock.Close() // this also unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return dir, build(top, "bin/test/"+set)
}

// Deb runs make to write the Debian package into an empty folder, and returns its path.
func Deb(dir string) (path string, err error) {
	top, err := Root()
	if err != nil {
		return "", err
	}
	if err := build(top, "deb", "DEB="+dir); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("make deb has made %q (%w)", found, err)
	}
	return found[0], nil
}

// build runs make for a target; assignments set its variables.
func build(top, target string, assignments ...string) error {
	args := append([]string{"--silent", "--no-print-directory", "-C", top, target}, assignments...)
	cmd := exec.Command("make", args...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w\n%s", target, err, out)
	}
	return nil
}

// environment returns the environment without the variables of an outer make, whose flags are not meant for the inner
// make.
func environment() (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MAKE") && !strings.HasPrefix(e, "MFLAGS=") {
			env = append(env, e)
		}
	}
	return env
}

// Root returns the top of the repository: the nearest folder above the test's that contains go.work.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.work")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.work in or above %s", dir)
		}
	}
}
