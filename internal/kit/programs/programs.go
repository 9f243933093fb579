// Package programs links corral, corrald, pilot and corral-slurm for the tests that start them, once for each set of
// flags: the first test that asks has them linked, and those of other packages find them. The Debian package is made
// for the one test that installs it.
//
// The Makefile says how they are linked, and where they are: below bin/test of the clone. Linking again what is up to
// date takes a fraction of a second, so every test asks, and none runs a program that is older than its source.
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

// Plain returns the folder of the programs as users build them.
func Plain() (dir string, err error) { return plain() }

// Tested returns the folder of the programs as the calling test is built: with the race detector in corrald, if it is
// in the test. The others are always as users have them.
func Tested() (dir string, err error) { return tested() }

// CopyPilot puts the pilot into dir, for tests whose pilots run as somebody who may not enter the clone, and returns
// its path.
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

// link has make link the programs of one set. Only one process does so at a time.
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
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return dir, build(top, "bin/test/"+set)
}

// Deb has make write the Debian package into a folder that is empty, and returns its path.
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

// build has make make a target; assignments are of its variables.
func build(top, target string, assignments ...string) error {
	args := append([]string{"--silent", "--no-print-directory", "-C", top, target}, assignments...)
	cmd := exec.Command("make", args...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w\n%s", target, err, out)
	}
	return nil
}

// environment is without what a make above would tell the one below: its flags are not meant for it.
func environment() (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MAKE") && !strings.HasPrefix(e, "MFLAGS=") {
			env = append(env, e)
		}
	}
	return env
}

// Root returns the folder with go.work, the top of the repository, above the test's.
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
