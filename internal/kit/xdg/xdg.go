// Package xdg determines the directories for Corral's files. All directories follow the XDG base directory variables,
// so that two set-ups with different variables are independent. If root starts Corral without these variables, Corral
// runs as a service of the machine, with its files in the system's directories.
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
	Data   string // run directories, which stay after `corral down`
	Socket string // corrald's API
	Worker string // corrald's socket for workers on this machine
}

// MaxSocketPath is the maximum length of a Unix socket's path on Linux, without the final NUL.
const MaxSocketPath = 107

// Find returns the layout for the environment; for unset variables it uses directories below home, or for root the
// system's directories. Relative values are ignored, as the XDG specification requires.
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

// sessionOfRoot is XDG_RUNTIME_DIR in a login of root. It is removed when root logs out, while a service continues.
const sessionOfRoot = "/run/user/0"

func (l Layout) sockets(dir string) Layout {
	l.Socket, l.Worker = filepath.Join(dir, "corrald.sock"), filepath.Join(dir, "worker.sock")
	return l
}

// Below returns a layout with all directories and sockets below one directory.
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

// Dirs returns the directories that corrald creates, each accessible to its user alone.
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
// directory with the worker port's key pair. The lock protects the database and is used by package store.
func (l Layout) Database() string    { return filepath.Join(l.State, "corrald.db") }
func (l Layout) Lock() string        { return l.Database() + ".lock" }
func (l Layout) Key() string         { return filepath.Join(l.State, "token.key") }
func (l Layout) PackageKey() string  { return filepath.Join(l.State, "package.key") }
func (l Layout) PID() string         { return filepath.Join(l.State, "corrald.pid") }
func (l Layout) Whereabouts() string { return filepath.Join(l.State, "corrald.where") }
func (l Layout) Log() string         { return filepath.Join(l.State, "corrald.log") }
func (l Layout) Certificate() string { return filepath.Join(l.State, "worker-port") }

// Owners is the folder that contains, for each user of a central corrald, a subfolder with the user's ssh keys.
func (l Layout) Owners() string { return filepath.Join(l.State, "owners") }

// Downloads is the directory for files that can be downloaded or created again, at some cost.
func (l Layout) Downloads() string { return l.Cache + "-downloads" }

// Pools is the parent of the folders of HTCondor pools.
func (l Layout) Pools() string { return filepath.Join(l.State, "pools") }

// Sites is the default folder for the roots of sites on this machine.
func (l Layout) Sites() string { return filepath.Join(l.Cache, "sites") }

// Ensembles is the folder for the workflows of ensembles, until the ensembles have ended.
func (l Layout) Ensembles() string { return filepath.Join(l.State, "ensembles") }

// Runs is the default parent of run directories.
func (l Layout) Runs() string { return filepath.Join(l.Data, "runs") }
