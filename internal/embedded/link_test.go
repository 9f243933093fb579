package embedded_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/pilot"
)

func (c *cluster) pilotConfig(holder string) pilot.LinkConfig {
	return pilot.LinkConfig{Tag: "tag", Token: testToken, Holder: holder, Host: "h", PID: 1, Addresses: []string{c.address()}}
}

// dialPilot dials until the port is open.
func (c *cluster) dialPilot(t *testing.T, cfg pilot.LinkConfig) (l *pilot.Link, err error) {
	t.Helper()
	await(t, "the port", func() bool {
		l, err = pilot.Dial(context.Background(), testLog(t), cfg)
		return err == nil || errors.Is(err, wire.ErrRefused)
	})
	if l != nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func TestOnePilotHoldsTheLease(t *testing.T) {
	t.Parallel()
	if lease := (dispatch.Config{}).Terms().Lease; lease != 15*time.Second {
		t.Errorf("without another the lease is %v, want 15 s", lease)
	}
	c := newCluster(t, dispatch.Config{})
	first, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	if off := first.ClockOffset().Abs(); off > time.Minute { // a delayed message may distort the measurement
		t.Errorf("the clock of this machine is %v off itself", off)
	}
	if lease := first.Lease(); lease != c.gate.links.Terms.Lease {
		t.Errorf("the lease is %v, want %v", lease, c.gate.links.Terms.Lease)
	}
	if _, err := c.dialPilot(t, c.pilotConfig("two")); !errors.Is(err, wire.ErrDuplicate) {
		t.Errorf("a second pilot: %v, want a duplicate", err)
	}
	wrong := c.pilotConfig("one")
	wrong.Token = "wrong"
	if _, err := c.dialPilot(t, wrong); !errors.Is(err, wire.ErrRefused) || errors.Is(err, wire.ErrDuplicate) {
		t.Errorf("a pilot with another token: %v, want a refusal", err)
	}
	if _, err := pilot.Dial(context.Background(), testLog(t), pilot.LinkConfig{Tag: "t", Holder: "x", Addresses: []string{"unix:/nowhere"}}); err == nil || errors.Is(err, wire.ErrRefused) {
		t.Errorf("without a route: %v, want an error other than a refusal", err)
	}
}

func TestPilotReportsAcrossARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	l, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Report(context.Background(), "started", "on h"); err != nil {
		t.Fatal(err)
	}
	c.stop()
	told := make(chan error, 1)
	go func() { told <- l.Report(context.Background(), "leaving", "idle") }()
	again := newClusterAt(t, dispatch.Config{}, c.socket)
	if err := <-told; err != nil {
		t.Errorf("Report() = %v after a restart", err)
	}
	if !slices.Equal(c.gate.reports, []string{"started: on h"}) || !slices.Equal(again.gate.reports, []string{"leaving: idle"}) {
		t.Errorf("reports = %q, then %q", c.gate.reports, again.gate.reports)
	}
	l.Close()
	if err := l.Report(context.Background(), "x", ""); err == nil {
		t.Error("a closed link reports")
	}
}

func TestPilotHearsCommands(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	l, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	c.gate.ask(corral.AskDrain)
	if got := <-l.Commands(); got != corral.AskDrain {
		t.Errorf("command = %q, want drain", got)
	}
	c.gate.ask(corral.AskCancel)
	if got := <-l.Commands(); got != corral.AskCancel {
		t.Errorf("command = %q, want leave", got)
	}
}

func TestSurplusPilotLeaves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	l, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	again := newClusterAt(t, dispatch.Config{}, c.socket)
	again.gate.mu.Lock()
	again.gate.holders[1] = "another"
	again.gate.mu.Unlock()
	// The pilot may have reconnected before the lease was granted to another pilot; then it is rejected at its next
	// connection.
	await(t, "the command to leave", func() bool {
		select {
		case got := <-l.Commands():
			return got == corral.AskCancel
		default:
			again.taps.closeAll()
			return false
		}
	})
}
