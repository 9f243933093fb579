package main

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/engine"
	"github.com/corral-pilot/corral/internal/xdg"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// settings are corrald's flags, checked.
type settings struct {
	layout    xdg.Layout
	listen    string // of the worker port
	advertise string
	runAs     string
	pilot     string
	binary    []byte // the pilot
	lease     time.Duration

	poolAddress netip.Addr
	logLevel    slog.Level

	mirrorListen, mirrorAdvertise string
	trusted                       []packages.PublicKey // beside corrald's own key
	supply                        engine.Supply
}

func newSettings(c *cli.Context) (settings, error) {
	s := settings{
		layout: xdg.Layout{
			State: c.String("state"), Cache: c.String("cache"), Data: c.String("data"),
			Socket: c.String("socket"), Worker: c.String("worker-socket"),
		},
		listen:    c.String("worker-listen"),
		advertise: c.String("advertise"),
		runAs:     c.String("run-as"),
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
	if _, _, err := net.SplitHostPort(s.listen); err != nil && s.listen != "" {
		return s, corral.ErrorAt(corral.Invalid, "--worker-listen", "%w", err)
	}
	err := checkAdvertised("--advertise", s.advertise)
	if err != nil {
		return s, err
	}
	if s.poolAddress, err = netip.ParseAddr(c.String("pool-address")); err != nil || s.poolAddress.IsUnspecified() {
		return s, corral.ErrorAt(corral.Invalid, "--pool-address", "want an IP address of this machine, such as 127.0.0.1")
	}
	if s.lease < time.Second {
		return s, corral.ErrorAt(corral.Invalid, "--lease", "%s is shorter than 1s", s.lease)
	}
	if err := s.logLevel.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return s, corral.ErrorAt(corral.Invalid, "--log-level", "%w", err)
	}
	if err := s.findSupply(c); err != nil {
		return s, err
	}
	return s, s.findPilot()
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// checkAdvertised checks what sites would be told to dial, before pilots look for it in vain.
func checkAdvertised(flag, address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, "1"
	}
	_, notIP := netip.ParseAddr(host)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || notIP != nil && !hostName.MatchString(host) {
		return corral.ErrorAt(corral.Invalid, flag, "%.80q is not HOST[:PORT]", address)
	}
	return nil
}

// findSupply reads how packages get to sites and whom they must be from.
func (s *settings) findSupply(c *cli.Context) error {
	s.mirrorListen, s.mirrorAdvertise = c.String("mirror-listen"), c.String("mirror-advertise")
	if s.mirrorListen != "" {
		if _, _, err := net.SplitHostPort(s.mirrorListen); err != nil {
			return corral.ErrorAt(corral.Invalid, "--mirror-listen", "%w", err)
		}
	}
	if err := checkAdvertised("--mirror-advertise", s.mirrorAdvertise); err != nil {
		return err
	}
	for _, k := range c.StringSlice("trust-key") {
		key, err := packages.ParsePublicKey(k)
		if err != nil {
			return corral.ErrorAt(corral.Invalid, "--trust-key", "%w", err)
		}
		s.trusted = append(s.trusted, key)
	}
	s.supply = engine.Supply{
		Way:        engine.Way(c.String("supply")),
		Pace:       staging.Pace{BytesPerS: c.Int64("mirror-floor"), Window: c.Duration("mirror-window")},
		CacheBytes: c.Int64("site-cache"),
	}
	if !slices.Contains(engine.Ways, s.supply.Way) {
		return corral.ErrorAt(corral.Invalid, "--supply", "%q is none of %v", s.supply.Way, engine.Ways)
	}
	if s.supply.Pace.BytesPerS < 1 || s.supply.Pace.Window < 100*time.Millisecond || s.supply.CacheBytes < 0 {
		return corral.ErrorAt(corral.Invalid, "--mirror-floor, --mirror-window, --site-cache", "want at least 1 byte/s, 100ms and 0 bytes")
	}
	return nil
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
