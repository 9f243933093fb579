package main

// Flags are checked as far as possible without side effects: a corrald that cannot work reports this before it creates
// a directory or changes its user. Each error names the flag.

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

// leastJobLease is the minimum lease of HTCondor's jobs: a lease must be renewed several times before it ends, at
// intervals of seconds.
const leastJobLease = 20 * time.Second

// leases are the times for which silent workers keep their tasks, and their jobs in HTCondor pools.
type leases struct{ task, job time.Duration }

// settings are corrald's checked flags.
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
	trusted       []packages.PublicKey // in addition to corrald's own key
	supply        delivery.Supply
}

// An identity is the user that corrald runs as.
type identity struct {
	name       string // of --run-as; empty: the user who starts corrald
	runas.User        // found by foresee
}

// An endpoint is a port that sites connect to: the workers' port, or the port of the mirror from which they fetch
// packages.
type endpoint struct {
	listen    string // HOST:PORT; empty: no mirror, or an automatic worker port
	advertise string // HOST[:PORT] for sites; empty: derived from listen
}

// An upkeep specifies the interval between polls of sites, and the amount of old data that is kept.
type upkeep struct {
	poll    time.Duration // interval between polls of sites
	history time.Duration // maximum age of entries; 0: all are kept
	log     int64         // maximum bytes of the log; 0: no limit
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
		return corral.ErrorAt(corral.Invalid, "--keep-history", "%s must be 0 or at least an hour", u.history)
	case u.log < 0:
		return corral.ErrorAt(corral.Invalid, "--keep-log-mib", "%d is negative", u.log>>20)
	}
	return nil
}

// newSettings reads the flags and refuses invalid values, before anything is created.
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
		return s, corral.ErrorAt(corral.Invalid, "--log-level", "%.80q is not debug, info, warn or error",
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

// wallet returns the folder with the ssh keys of a central corrald's users.
func (s settings) wallet() wallet { return wallet(s.layout.Owners()) }

// hostName matches valid names in --advertise.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// checkAdvertised checks the address that sites would dial, before pilots fail to reach it.
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

// checkPaths refuses paths that depend on the directory where corrald is started, and socket paths that are too long
// for the kernel, which would otherwise be detected only when the socket is created.
func checkPaths(l xdg.Layout) error {
	for _, p := range []struct{ flag, path string }{
		{"--state", l.State}, {"--cache", l.Cache}, {"--data", l.Data},
		{"--socket", l.Socket}, {"--worker-socket", l.Worker},
	} {
		if !filepath.IsAbs(p.path) {
			return corral.ErrorAt(corral.Invalid, p.flag, "%q is not an absolute path", p.path)
		}
		if strings.HasSuffix(p.flag, "socket") && len(p.path) > xdg.MaxSocketPath {
			const long = "%q is longer than the maximum for a socket's path, %d bytes"
			return corral.ErrorAt(corral.Invalid, p.flag, long, p.path, xdg.MaxSocketPath)
		}
	}
	return nil
}

// siteCache is the maximum total size of packages at a site, in bytes: enough for several versions of the largest
// package. The least recently used packages are removed first.
const siteCache = 4 << 30

// findSupply reads the settings for the delivery of packages to sites, and for the keys with which they must be signed.
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
		return corral.ErrorAt(corral.Invalid, "--supply", "%q is not one of %v", s.supply.Way, delivery.Ways)
	}
	return nil
}

// findPilot sets the default pilot binary: the program pilot in the folder of this program.
func (s *settings) findPilot() error {
	if s.pilot != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "--pilot", "is required: %w", err)
	}
	s.pilot = filepath.Join(filepath.Dir(self), "pilot")
	return nil
}
