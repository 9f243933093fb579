// Package xdg says where Corral keeps its files. Everything follows the XDG base directory variables,
// so two set-ups with different variables never meet.
package xdg

import (
	"fmt"
	"os"
	"path/filepath"
)

// A Layout is the set of directories and sockets of one personal set-up.
type Layout struct {
	State  string // database, keys, log and pid file of corrald
	Cache  string // mirror of worker packages and the roots of local sites
	Data   string // run directories: what stays after `corral down`
	Socket string // corrald's API
	Worker string // corrald's socket for workers on this machine
}

// MaxSocketPath is the longest path that a Unix socket address holds on Linux, less its final NUL.
const MaxSocketPath = 107

// Find returns the layout that the environment asks for; home is used for variables that are not set.
// Relative values are ignored, as the XDG specification says.
func Find() (Layout, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Layout{}, fmt.Errorf("finding the home directory: %w", err)
	}
	state := filepath.Join(dir("XDG_STATE_HOME", filepath.Join(home, ".local", "state")), "corral")
	l := Layout{
		State: state,
		Cache: filepath.Join(dir("XDG_CACHE_HOME", filepath.Join(home, ".cache")), "corral"),
		Data:  filepath.Join(dir("XDG_DATA_HOME", filepath.Join(home, ".local", "share")), "corral"),
	}
	run := filepath.Join(dir("XDG_RUNTIME_DIR", state), "corral")
	if run == filepath.Join(state, "corral") {
		run = state
	}
	l.Socket, l.Worker = filepath.Join(run, "corrald.sock"), filepath.Join(run, "worker.sock")
	if len(l.Socket) > MaxSocketPath {
		return Layout{}, fmt.Errorf("socket path %q is longer than %d bytes: set XDG_RUNTIME_DIR to a shorter directory",
			l.Socket, MaxSocketPath)
	}
	return l, nil
}

// Below returns a layout that has everything below one directory.
func Below(dir string) Layout {
	return Layout{
		State:  filepath.Join(dir, "state"),
		Cache:  filepath.Join(dir, "cache"),
		Data:   filepath.Join(dir, "data"),
		Socket: filepath.Join(dir, "corrald.sock"),
		Worker: filepath.Join(dir, "worker.sock"),
	}
}

func dir(variable, fallback string) string {
	if v := os.Getenv(variable); filepath.IsAbs(v) {
		return v
	}
	return fallback
}

// Database, Key, PackageKey, PID and Log are corrald's files below State; Certificate is the directory
// with the worker port's key pair.
func (l Layout) Database() string    { return filepath.Join(l.State, "corrald.db") }
func (l Layout) Key() string         { return filepath.Join(l.State, "token.key") }
func (l Layout) PackageKey() string  { return filepath.Join(l.State, "package.key") }
func (l Layout) PID() string         { return filepath.Join(l.State, "corrald.pid") }
func (l Layout) Log() string         { return filepath.Join(l.State, "corrald.log") }
func (l Layout) Certificate() string { return filepath.Join(l.State, "worker-port") }

// SiteRoot is the default root directory of a site on this machine.
func (l Layout) SiteRoot(name string) string { return filepath.Join(l.Cache, "sites", name) }

// Runs is the default parent of run directories.
func (l Layout) Runs() string { return filepath.Join(l.Data, "runs") }
