package xdg

import (
	"path/filepath"
	"strings"
	"testing"
)

// set sets the variables that Find looks at; those that are not named are empty.
func set(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, env[name])
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want Layout
	}{
		{"only a home", map[string]string{"HOME": "/home/ann"}, Layout{
			State: "/home/ann/.local/state/corral", Cache: "/home/ann/.cache/corral", Data: "/home/ann/.local/share/corral",
			Socket: "/home/ann/.local/state/corral/corrald.sock", Worker: "/home/ann/.local/state/corral/worker.sock"}},
		{"all variables", map[string]string{"HOME": "/home/ann", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"}, Layout{
			State: "/s/corral", Cache: "/c/corral", Data: "/d/corral", Socket: "/r/corral/corrald.sock", Worker: "/r/corral/worker.sock"}},
		{"a relative one counts for nothing", map[string]string{"HOME": "/home/ann", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "/r"}, Layout{
			State: "/home/ann/.local/state/corral", Cache: "/home/ann/.cache/corral", Data: "/home/ann/.local/share/corral",
			Socket: "/r/corral/corrald.sock", Worker: "/r/corral/worker.sock"}},
	} {
		set(t, tt.env)
		if got, err := Find(); err != nil || got != tt.want {
			t.Errorf("%s: Find = %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// A socket's path has little room, and the system's own message about that helps nobody.
func TestSocketPathIsTooLong(t *testing.T) {
	set(t, map[string]string{"HOME": "/home/ann", "XDG_RUNTIME_DIR": "/" + strings.Repeat("long", 25)})
	if l, err := Find(); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("Find = %+v, %v, want an error that names XDG_RUNTIME_DIR", l, err)
	}
}

// Everything of one set-up is below its directories, so that ending it can delete those.
func TestEverythingIsBelow(t *testing.T) {
	t.Parallel()
	l := Below("/tmp/x")
	for path, dir := range map[string]string{
		l.Database(): l.State, l.Key(): l.State, l.PID(): l.State, l.Log(): l.State, l.Certificate(): l.State,
		l.SiteRoot("a"): l.Cache, l.Runs(): l.Data, l.Socket: "/tmp/x", l.Worker: "/tmp/x", l.State: "/tmp/x",
	} {
		if below, err := filepath.Rel(dir, path); err != nil || strings.HasPrefix(below, "..") {
			t.Errorf("%s is not below %s", path, dir)
		}
	}
}
