// Package xdg says where Corral keeps its files. Everything follows the XDG base directory variables,
// so two set-ups with different variables never meet. What root starts without them is a service of the
// machine, with its files where those are kept.
package xdg

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Find returns the layout that the environment asks for; home, or for root the system's directories, is
// used for variables that are not set. Relative values are ignored, as the XDG specification says.
func Find() (Layout, error) {
	l, err := find(os.Getuid() == 0)
	if err == nil && len(l.Socket) > MaxSocketPath {
		err = fmt.Errorf("socket path %q is longer than %d bytes: set XDG_RUNTIME_DIR to a shorter directory",
			l.Socket, MaxSocketPath)
	}
	return l, err
}

func find(root bool) (Layout, error) {
	var l Layout
	if root {
		l = Layout{State: "/var/lib/corral/state", Cache: "/var/cache/corral", Data: "/var/lib/corral/data"}
		l = l.sockets("/run/corral")
	} else {
		home, err := os.UserHomeDir()
		if err != nil {
			return l, fmt.Errorf("finding the home directory: %w", err)
		}
		l.State = filepath.Join(home, ".local", "state", "corral")
		l.Cache = filepath.Join(home, ".cache", "corral")
		l.Data = filepath.Join(home, ".local", "share", "corral")
	}
	l.State = dir("XDG_STATE_HOME", l.State)
	l.Cache = dir("XDG_CACHE_HOME", l.Cache)
	l.Data = dir("XDG_DATA_HOME", l.Data)
	if !root {
		l = l.sockets(l.State)
	}
	run := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(run) && !(root && run == sessionOfRoot) {
		l = l.sockets(filepath.Join(run, "corral"))
	}
	return l, nil
}

// sessionOfRoot is what a login of root has as XDG_RUNTIME_DIR. It is removed when root logs out, and a service goes
// on.
const sessionOfRoot = "/run/user/0"

func (l Layout) sockets(dir string) Layout {
	l.Socket, l.Worker = filepath.Join(dir, "corrald.sock"), filepath.Join(dir, "worker.sock")
	return l
}

// Below returns a layout that has everything below one directory.
func Below(dir string) Layout {
	in := func(name string) string { return filepath.Join(dir, name) }
	return Layout{State: in("state"), Cache: in("cache"), Data: in("data")}.sockets(in("run"))
}

func dir(variable, fallback string) string {
	if v := os.Getenv(variable); filepath.IsAbs(v) {
		return filepath.Join(v, "corral")
	}
	return fallback
}

// Dirs are the directories that corrald makes, each for its user alone.
func (l Layout) Dirs() []string {
	dirs := []string{l.State, l.Cache, l.Data}
	for _, socket := range []string{l.Socket, l.Worker} {
		if dir := filepath.Dir(socket); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Database, Lock, Key, PackageKey, PID, Whereabouts and Log are corrald's files below State; Certificate is the
// directory with the worker port's key pair. The lock is the database's, and package store's.
func (l Layout) Database() string    { return filepath.Join(l.State, "corrald.db") }
func (l Layout) Lock() string        { return l.Database() + ".lock" }
func (l Layout) Key() string         { return filepath.Join(l.State, "token.key") }
func (l Layout) PackageKey() string  { return filepath.Join(l.State, "package.key") }
func (l Layout) PID() string         { return filepath.Join(l.State, "corrald.pid") }
func (l Layout) Whereabouts() string { return filepath.Join(l.State, "corrald.where") }
func (l Layout) Log() string         { return filepath.Join(l.State, "corrald.log") }
func (l Layout) Certificate() string { return filepath.Join(l.State, "worker-port") }

// Owners has a folder for each of those who ask a central corrald, with their ssh keys.
func (l Layout) Owners() string { return filepath.Join(l.State, "owners") }

// Downloads is a directory for what can be downloaded or made again, at some cost.
func (l Layout) Downloads() string { return l.Cache + "-downloads" }

// Pools is the parent of the folders of HTCondor pools.
func (l Layout) Pools() string { return filepath.Join(l.State, "pools") }

// Sites is the folder in which sites on this machine have their roots by default.
func (l Layout) Sites() string { return filepath.Join(l.Cache, "sites") }

// Ensembles is where the workflows of ensembles are until these have ended.
func (l Layout) Ensembles() string { return filepath.Join(l.State, "ensembles") }

// Runs is the default parent of run directories.
func (l Layout) Runs() string { return filepath.Join(l.Data, "runs") }
