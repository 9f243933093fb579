package personal

import (
	"os"
	"syscall"
	"testing"
)

// What a corrald left of itself is believed only where that very process listens.
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
