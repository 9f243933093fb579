package main

// Flags are checked as far as that is possible without touching anything: a corrald that cannot work says so before it
// has made a directory or changed its user. Each error names the flag.

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/node/runas"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/packages"
)

// leastJobLease is that of HTCondor's jobs: they are renewed some times before they are over, at intervals of seconds.
const leastJobLease = 20 * time.Second

// leases are how long silent workers keep what they have: tasks, and jobs in HTCondor pools.
type leases struct{ task, job time.Duration }

// settings are corrald's flags, checked.
type settings struct {
	layout xdg.Layout
	worker endpoint
	runAs  identity
	pilot  string
	binary []byte // the pilot; read by foresee
	lease  leases
	upkeep upkeep
	cpus   int // of this machine, for the site local; 0: all

	poolAddress netip.Addr
	logLevel    slog.Level
	central     centralSettings

	metricsListen string
	mirror        endpoint
	trusted       []packages.PublicKey // beside corrald's own key
	supply        delivery.Supply
}

// An identity is the user as whom corrald runs.
type identity struct {
	name       string // of --run-as; empty: the user who starts it
	runas.User        // found by foresee
}

// An endpoint is a port that sites reach: that of workers, and that of the mirror from which they take packages.
type endpoint struct {
	listen    string // HOST:PORT; empty: the mirror has none, and that of workers is chosen
	advertise string // HOST[:PORT] by which sites reach it; empty: where it listens
}

// An upkeep says how often sites are asked, and how much is kept of the past.
type upkeep struct {
	poll    time.Duration // of sites
	history time.Duration // how old its entries get; 0: all are kept
	log     int64         // bytes that it may have; 0: any
}

func upkeepOf(c *cli.Context) upkeep {
	return upkeep{
		poll: c.Duration("poll"), history: c.Duration("keep-history"), log: int64(c.Int("keep-log-mib")) << 20,
	}
}

func (u upkeep) check() error {
	switch {
	case u.poll < 100*time.Millisecond || u.poll > time.Hour:
		return corral.ErrorAt(corral.Invalid, "--poll", "%s is not between 100ms and 1h", u.poll)
	case u.history < 0 || u.history > 0 && u.history < time.Hour:
		return corral.ErrorAt(corral.Invalid, "--keep-history", "%s is neither 0 nor an hour or more", u.history)
	case u.log < 0:
		return corral.ErrorAt(corral.Invalid, "--keep-log-mib", "%d is negative", u.log>>20)
	}
	return nil
}

// newSettings reads the flags and refuses what cannot work, before anything is made.
func newSettings(c *cli.Context) (settings, error) {
	s := settings{
		layout: xdg.Layout{
			State: c.String("state"), Cache: c.String("cache"), Data: c.String("data"),
			Socket: c.String("socket"), Worker: c.String("worker-socket"),
		},
		worker: endpoint{c.String("worker-listen"), c.String("advertise")},
		runAs:  identity{name: c.String("run-as")},
		pilot:  c.String("pilot"),
		lease:  leases{c.Duration("lease"), c.Duration("job-lease")},
		upkeep: upkeepOf(c),
		cpus:   c.Int("machine-cpus"),

		metricsListen: c.String("metrics-listen"),
	}
	if c.NArg() > 0 {
		return s, corral.Errorf(corral.Invalid, "unexpected argument %q", c.Args().First())
	}
	if err := checkPaths(s.layout); err != nil {
		return s, err
	}
	err := cmp.Or(checkListen(workerListen, s.worker.listen), checkListen("--metrics-listen", s.metricsListen),
		checkAdvertised("--advertise", s.worker.advertise))
	if err != nil {
		return s, err
	}
	if s.poolAddress, err = netip.ParseAddr(c.String("pool-address")); err != nil || s.poolAddress.IsUnspecified() {
		const want = "want an IP address of this machine, such as 127.0.0.1"
		return s, corral.ErrorAt(corral.Invalid, "--pool-address", want)
	}
	if s.lease.task < time.Second {
		return s, corral.ErrorAt(corral.Invalid, "--lease", "%s is shorter than 1s", s.lease.task)
	}
	if s.lease.job < leastJobLease {
		return s, corral.ErrorAt(corral.Invalid, "--job-lease", "%s is shorter than %s", s.lease.job, leastJobLease)
	}
	if err := s.upkeep.check(); err != nil {
		return s, err
	}
	if s.cpus < 0 {
		return s, corral.ErrorAt(corral.Invalid, "--machine-cpus", "%d is negative", s.cpus)
	}
	if err := s.logLevel.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return s, corral.ErrorAt(corral.Invalid, "--log-level", "%.80q is none of debug, info, warn, error",
			c.String("log-level"))
	}
	if err := s.findSupply(c); err != nil {
		return s, err
	}
	if s.central, err = newCentralSettings(c); err != nil {
		return s, err
	}
	return s, s.findPilot()
}

// wallet is where the ssh keys of those are who ask a central corrald.
func (s settings) wallet() wallet { return wallet(s.layout.Owners()) }

// hostName is what a name in --advertise may consist of.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// checkAdvertised checks what sites would be told to dial, before pilots fail to find it.
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

// checkPaths refuses paths that depend on where corrald is started, and sockets whose path is longer than the kernel
// takes: that would be found out only when the socket is made.
func checkPaths(l xdg.Layout) error {
	for _, p := range []struct{ flag, path string }{
		{"--state", l.State}, {"--cache", l.Cache}, {"--data", l.Data},
		{"--socket", l.Socket}, {"--worker-socket", l.Worker},
	} {
		if !filepath.IsAbs(p.path) {
			return corral.ErrorAt(corral.Invalid, p.flag, "%q is not an absolute path", p.path)
		}
		if strings.HasSuffix(p.flag, "socket") && len(p.path) > xdg.MaxSocketPath {
			const long = "%q is longer than a socket's path may be, %d bytes"
			return corral.ErrorAt(corral.Invalid, p.flag, long, p.path, xdg.MaxSocketPath)
		}
	}
	return nil
}

// siteCache is how many bytes of packages stay at a site: several versions of the largest one. Those used longest ago
// go first.
const siteCache = 4 << 30

// findSupply reads how packages get to sites and whom they must be from.
func (s *settings) findSupply(c *cli.Context) error {
	s.mirror = endpoint{c.String("mirror-listen"), c.String("mirror-advertise")}
	if err := checkListen("--mirror-listen", s.mirror.listen); err != nil {
		return err
	}
	if err := checkAdvertised("--mirror-advertise", s.mirror.advertise); err != nil {
		return err
	}
	for _, k := range c.StringSlice("trust-key") {
		key, err := packages.ParsePublicKey(k)
		if err != nil {
			return corral.ErrorAt(corral.Invalid, "--trust-key", "%w", err)
		}
		s.trusted = append(s.trusted, key)
	}
	s.supply = delivery.Supply{Way: delivery.Way(c.String("supply")), CacheBytes: siteCache}
	if !slices.Contains(delivery.Ways, s.supply.Way) {
		return corral.ErrorAt(corral.Invalid, "--supply", "%q is none of %v", s.supply.Way, delivery.Ways)
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
