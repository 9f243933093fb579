package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/xdg"
)

// settings are corrald's flags, checked.
type settings struct {
	layout    xdg.Layout
	listen    string // of the worker port
	advertise string
	pilot     string
	lease     time.Duration
	logLevel  slog.Level
}

func newSettings(c *cli.Context) (settings, error) {
	s := settings{
		layout: xdg.Layout{
			State: c.String("state"), Cache: c.String("cache"), Data: c.String("data"),
			Socket: c.String("socket"), Worker: c.String("worker-socket"),
		},
		listen:    c.String("worker-listen"),
		advertise: c.String("advertise"),
		pilot:     c.String("pilot"),
		lease:     c.Duration("lease"),
	}
	if c.NArg() > 0 {
		return s, corral.Errorf(corral.Invalid, "unexpected argument %q", c.Args().First())
	}
	for _, p := range []struct{ flag, path string }{
		{"--state", s.layout.State}, {"--cache", s.layout.Cache}, {"--data", s.layout.Data},
		{"--socket", s.layout.Socket}, {"--worker-socket", s.layout.Worker},
	} {
		if !filepath.IsAbs(p.path) {
			return s, corral.ErrorAt(corral.Invalid, p.flag, "%q is not an absolute path", p.path)
		}
	}
	for _, p := range []struct{ flag, path string }{{"--socket", s.layout.Socket}, {"--worker-socket", s.layout.Worker}} {
		if len(p.path) > xdg.MaxSocketPath {
			return s, corral.ErrorAt(corral.Invalid, p.flag, "%q is longer than a socket's path may be, %d bytes", p.path, xdg.MaxSocketPath)
		}
	}
	if _, _, err := net.SplitHostPort(s.listen); err != nil {
		return s, corral.ErrorAt(corral.Invalid, "--worker-listen", "%w", err)
	}
	if s.lease < time.Second {
		return s, corral.ErrorAt(corral.Invalid, "--lease", "%s is shorter than 1s", s.lease)
	}
	if err := s.logLevel.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return s, corral.ErrorAt(corral.Invalid, "--log-level", "%w", err)
	}
	return s, s.findPilot()
}

// findPilot makes the pilot binary default to the one beside this program.
func (s *settings) findPilot() error {
	if s.pilot != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "--pilot", "is needed: %w", err)
	}
	s.pilot = filepath.Join(filepath.Dir(self), "pilot")
	return nil
}
