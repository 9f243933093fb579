package personal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/runas"
)

// A corrald's whereabouts are trusted only if exactly that process listens there.
func TestLocated(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	here := c
	here.Layout.Socket = c.Layout.State + "/corrald.sock"
	if here.Answers(t.Context()) {
		t.Fatal("it answers where nothing listens")
	}
	for _, tt := range []struct {
		name  string
		w     Whereabouts
		found bool
	}{
		{"itself", Whereabouts{c.PID(), c.Layout.Socket, c.Layout.Worker}, true},
		{"another process", Whereabouts{os.Getpid(), c.Layout.Socket, c.Layout.Worker}, false},
		{"another socket", Whereabouts{c.PID(), c.Layout.Socket + "x", c.Layout.Worker}, false},
		{"no socket", Whereabouts{PID: c.PID()}, false},
	} {
		if err := tt.w.Write(c.Layout); err != nil {
			t.Fatal(err)
		}
		found, err := here.Located()
		if err != nil || (found.Layout == c.Layout) != tt.found || here.Answers(t.Context()) != tt.found {
			t.Errorf("%s: located at %s (%v), want it found: %v", tt.name, found.Layout.Socket, err, tt.found)
		}
	}
	if err := os.Remove(c.Layout.Whereabouts()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(c.Layout.Whereabouts(), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := here.Located(); err != nil || found.Layout != here.Layout {
		t.Errorf("from a pipe: located at %s (%v), want what was asked for", found.Layout.Socket, err)
	}
}

// A socket is trusted only if no other user can replace it.
func TestCheckSockets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(dir, socket string) error
		want   string // of the error; empty: none
	}{
		{"what is not there yet", func(dir, _ string) error { return os.Remove(dir) }, ""},
		{"the user's alone", func(dir, _ string) error { return os.Chmod(dir, 0o755) }, ""},
		{"others may write", func(dir, _ string) error { return os.Chmod(dir, 0o770) }, "has mode 0770, so that other users"},
		{"everybody's", func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
			"so that any user could put a socket there"},
		{"a link", func(dir, _ string) error { return errors.Join(os.Remove(dir), os.Symlink("/tmp", dir)) },
			"is a symbolic link"},
		{"a linked socket", func(_, socket string) error { return os.Symlink("/tmp/x", socket) }, "is a symbolic link"},
	} {
		l := newCorrald(t).Layout
		l.Socket = filepath.Join(l.State, "run", "corrald.sock")
		dir := filepath.Dir(l.Socket)
		if err := errors.Join(os.MkdirAll(dir, 0o700), tt.change(dir, l.Socket)); err != nil {
			t.Fatal(err)
		}
		err := CheckSockets(l, runas.User{})
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || corral.KindOf(err) != corral.Forbidden || !strings.Contains(fmt.Sprint(err), tt.want):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case !strings.HasPrefix(err.Error(), "--socket: "):
			t.Errorf("%s: %v, want the option that names the socket", tt.name, err)
		}
	}
}

// If corrald listens elsewhere, the two environments give the reason.
func TestElsewhere(t *testing.T) {
	for _, tt := range []struct{ there, here, want string }{
		{"/run/1", "/run/2", "XDG_RUNTIME_DIR was /run/1 when it was started, and is /run/2 here"},
		{"/run/1", "", "XDG_RUNTIME_DIR was /run/1 when it was started, and is not set here"},
		{"", "/run/2", "XDG_RUNTIME_DIR was not set when it was started, and is /run/2 here"},
		{"/run/1", "/run/1", "the environment says /elsewhere"},
	} {
		t.Setenv("XDG_RUNTIME_DIR", tt.there)
		c := newCorrald(t)
		start(t, c)
		t.Setenv("XDG_RUNTIME_DIR", tt.here)
		if why := c.Elsewhere(c.Layout); why != "" {
			t.Errorf("where it is: %q", why)
		}
		than := c.Layout
		than.Socket = "/elsewhere"
		if why := c.Elsewhere(than); why != tt.want {
			t.Errorf("started with %q, here is %q: %q, want %q", tt.there, tt.here, why, tt.want)
		}
	}
}

// A corrald whose socket a logout has deleted is not contacted, but reported with advice.
func TestLost(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	if err := (Whereabouts{c.PID(), c.Layout.Socket, c.Layout.Worker}).Write(c.Layout); err != nil {
		t.Fatal(err)
	}
	if err := c.Lost(); err != nil {
		t.Errorf("one that answers: %v", err)
	}
	if err := os.Remove(c.Layout.Socket); err != nil {
		t.Fatal(err)
	}
	err := c.Lost()
	want := fmt.Sprintf("corrald (process %d) is running, but its socket %s is gone, as after a logout: `kill %[1]d`, then", c.PID(),
		c.Layout.Socket)
	if corral.KindOf(err) != corral.Unavailable || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Lost = %v, want %s", err, want)
	}
}
