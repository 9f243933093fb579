package xdg

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// set sets the variables that Find reads; variables that env does not name are empty.
func set(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, env[name])
	}
}

func TestFind(t *testing.T) {
	home := map[string]string{"HOME": "/home/ann"}
	all := map[string]string{"HOME": "/home/ann", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"}
	everywhere := Layout{State: "/s/corral", Cache: "/c/corral", Data: "/d/corral", Socket: "/r/corral/corrald.sock", Worker: "/r/corral/worker.sock"}
	service := Layout{State: "/var/lib/corral/state", Cache: "/var/cache/corral", Data: "/var/lib/corral/data",
		Socket: "/run/corral/corrald.sock", Worker: "/run/corral/worker.sock"}
	for _, tt := range []struct {
		name string
		root bool
		env  map[string]string
		want Layout
	}{
		{"only a home", false, home, Layout{
			State: "/home/ann/.local/state/corral", Cache: "/home/ann/.cache/corral", Data: "/home/ann/.local/share/corral",
			Socket: "/home/ann/.local/state/corral/corrald.sock", Worker: "/home/ann/.local/state/corral/worker.sock"}},
		{"all variables", false, all, everywhere},
		{"a relative one counts for nothing", false, map[string]string{"HOME": "/home/ann", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "/r"}, Layout{
			State: "/home/ann/.local/state/corral", Cache: "/home/ann/.cache/corral", Data: "/home/ann/.local/share/corral",
			Socket: "/r/corral/corrald.sock", Worker: "/r/corral/worker.sock"}},
		{"root, all variables", true, all, everywhere},
		{"root, no home", true, nil, service},
		{"root, logged in", true, map[string]string{"HOME": "/root", "XDG_RUNTIME_DIR": "/run/user/0"}, service},
	} {
		set(t, tt.env)
		if got, err := find(tt.root); err != nil || got != tt.want {
			t.Errorf("%s: find = %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// The length of a socket's path is limited, and the system's own message about the limit does not help.
func TestSocketPathIsTooLong(t *testing.T) {
	set(t, map[string]string{"HOME": "/home/ann", "XDG_RUNTIME_DIR": "/" + strings.Repeat("long", 25)})
	if l, err := Find(); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("Find = %+v, %v, want an error that names XDG_RUNTIME_DIR", l, err)
	}
}

// All files of a set-up are below its directories, so that ending it can delete them.
func TestEverythingIsBelow(t *testing.T) {
	t.Parallel()
	l := Below("/tmp/x")
	for path, dir := range map[string]string{
		l.Database(): l.State, l.Key(): l.State, l.PID(): l.State, l.Whereabouts(): l.State, l.Lock(): l.State, l.Log(): l.State, l.Certificate(): l.State, l.Pools(): l.State,
		l.Sites(): l.Cache, l.Runs(): l.Data, l.Socket: "/tmp/x/run", l.Worker: "/tmp/x/run", l.State: "/tmp/x",
	} {
		if below, err := filepath.Rel(dir, path); err != nil || strings.HasPrefix(below, "..") {
			t.Errorf("%s is not below %s", path, dir)
		}
	}
}

// The two sockets are in one directory, which may be the state directory.
func TestDirs(t *testing.T) {
	t.Parallel()
	l := Below("/x")
	if got, want := l.Dirs(), []string{"/x/state", "/x/cache", "/x/data", "/x/run"}; !slices.Equal(got, want) {
		t.Errorf("Dirs = %v, want %v", got, want)
	}
	if got, want := l.sockets(l.State).Dirs(), []string{"/x/state", "/x/cache", "/x/data"}; !slices.Equal(got, want) {
		t.Errorf("Dirs = %v, want %v", got, want)
	}
}
