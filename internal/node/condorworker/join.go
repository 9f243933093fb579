package condorworker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/process"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

const (
	linkWait = 2 * time.Second // for reaching corrald; workers of an HTCondor pool can run without it
	tryGap   = time.Second     // between two attempts to find a way to the pool
)

// A Joining finds a way into an HTCondor pool for a supervisor, in steps. NewJoining finds the installed package; Begin
// measures in the background how the pool can reach this node; Found delivers the result; once the owner has set
// Choice, Order returns orders for workers. Its methods must be called from one goroutine.
type Joining struct {
	Release string // HTCondor's folder
	order   jobfiles.Order
	ports   [2]uint16 // at which this node may be dialled; zero: any ports
	linkBy  time.Time // when it stops waiting for a route to corrald
	wayBy   time.Time // when it gives up

	begun  bool
	search sync.WaitGroup
	found  chan Way
	Choice *broker.Choice // how the pool reaches this node; nil: not yet known
}

// A Way describes how the pool reaches a node, or why it cannot.
type Way struct {
	Choice broker.Choice
	Err    error
}

// ErrNotInstalled reports that the HTCondor package is not installed at the site. A setup job may install it.
var ErrNotInstalled = errors.New("is not installed at this site")

// NewJoining finds the order's HTCondor package. ports is the range that the site allows its jobs, zero: any.
func NewJoining(o jobfiles.Order, ports [2]uint16, started time.Time) (*Joining, error) {
	p := o.Pilot.Condor
	dir, err := staging.Dir(o.Root, packages.Package{Digest: p.Digest})
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", p.Package, err)
	}
	if err := hasMaster(dir); err != nil {
		return nil, fmt.Errorf("package %s %w: %w", p.Package, ErrNotInstalled, err)
	}
	return &Joining{
		Release: dir, order: o, ports: ports, found: make(chan Way, 1),
		linkBy: started.Add(linkWait), wayBy: started.Add(min(joinTime, time.Duration(o.Pilot.Walltime)/2)),
	}, nil
}

// hasMaster checks for the only program of the package that is started directly.
func hasMaster(release string) error {
	_, err := os.Stat(filepath.Join(release, "sbin", "condor_master"))
	return err
}

// Due reports whether Begin may be called: the pilot has reached corrald (linked), which can test whether it reaches
// this node, or the pilot no longer waits for corrald.
func (j *Joining) Due(now time.Time, linked bool) bool {
	return !j.begun && (linked || j.order.Pilot.Attached() || !now.Before(j.linkBy))
}

// Begin starts measuring how the pool can reach this node. callBack asks corrald to dial the node, and is nil if
// corrald was not reached. The end of ctx ends the search; Close waits for it.
func (j *Joining) Begin(ctx context.Context, callBack broker.CallBack) {
	if j.order.Pilot.Attached() {
		callBack = NotAtSchedd
	}
	c := request(j.order.Tag, *j.order.Pilot, j.ports, callBack)
	j.begun = true
	j.search.Go(func() { j.found <- negotiate(ctx, c, j.wayBy) })
}

// Found returns a channel that delivers the Way once. A nil Joining belongs to a pilot for corrald's own cluster; its
// channel never delivers.
func (j *Joining) Found() <-chan Way {
	if j == nil {
		return nil
	}
	return j.found
}

// Close waits for the search, whose ctx must have ended.
func (j *Joining) Close() { j.search.Wait() }

// Order returns the settings that a starting worker needs for the pool; dir is the job's directory. The token is read
// for each order, because corrald replaces it while the job is queued.
func (j *Joining) Order(dir string) (*process.Join, error) {
	secret, err := os.ReadFile(filepath.Join(dir, jobfiles.PoolToken))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the job has no token for the pool")
	}
	if err != nil {
		return nil, fmt.Errorf("read the token for the pool: %w", err)
	}
	return &process.Join{
		Secret: strings.TrimSpace(string(secret)), Release: j.Release, Ports: j.ports, Way: *j.Choice,
	}, nil
}

// FindWay is the counterpart of Joining for a host: it measures how the pool reaches the host's own node, and stores
// the result in the order of the host's worker.
func FindWay(ctx context.Context, o *process.Order, callBack broker.CallBack) (broker.Choice, error) {
	if err := hasMaster(o.Join.Release); err != nil {
		return broker.Choice{}, fmt.Errorf("package %s is not visible on this node: %w", o.Condor.Package, err)
	}
	c := request(o.Tag, o.PilotOrder, o.Join.Ports, callBack)
	way := negotiate(ctx, c, time.Now().Add(min(joinTime, o.EndsIn/2)))
	if way.Err != nil {
		return way.Choice, fmt.Errorf("no way to the pool: %w", way.Err)
	}
	o.Join.Way = way.Choice
	return way.Choice, nil
}

// Measured describes the measurements, for display.
func Measured(c broker.Choice) string { return "measured: " + strings.Join(c.Measured, "; ") }

// request returns the configuration of the measurement for an order's pool.
func request(tag string, p jobfiles.PilotOrder, ports [2]uint16, callBack broker.CallBack) broker.Config {
	c := p.Condor
	return broker.Config{
		Mode: c.Broker, Collector: c.Collector, CCB: c.CCB, Schedd: c.Schedd, Streams: c.Streams, Ports: ports,
		CallBack: callBack, Relays: c.Relays,
		DialRelay: func(ctx context.Context, address string) (net.Conn, error) {
			return relay.Dial(ctx, address, relay.NewRequest(relay.Pool, tag, p.Token))
		},
	}
}

// negotiate retries until by, while another attempt may help: an attempt must not give up the node for which it waited
// in the batch queue just because the pool is being restarted.
func negotiate(ctx context.Context, c broker.Config, by time.Time) (w Way) {
	for {
		w.Choice, w.Err = broker.Negotiate(ctx, c)
		again := corral.KindOf(w.Err) == corral.Unavailable && !time.Now().After(by)
		if !again || !retry.For(ctx, tryGap) {
			return w
		}
	}
}

// NotAtSchedd is the broker.CallBack for a pool that corrald does not run: corrald can dial only from its own machine.
func NotAtSchedd(context.Context, []string, string) (string, error) {
	return "", corral.Errorf(corral.Unavailable,
		"the schedd of an attached pool may be elsewhere than corrald, which would dial")
}

// PortsVariable is the environment variable in which grid sites name the ports at which programs may be reached, as
// LOW,HIGH.
const PortsVariable = "GLOBUS_TCP_PORT_RANGE"

// SitePorts returns the lowest and the highest port at which the site lets programs be reached; zero: any. On an error,
// which describes the expected format, the ports are also zero: a pilot continues without the range.
func SitePorts() ([2]uint16, error) { return parsePorts(os.Getenv(PortsVariable)) }

// parsePorts parses LOW,HIGH. Ports below 1024 are reserved.
func parsePorts(text string) (ports [2]uint16, err error) {
	if text == "" {
		return ports, nil
	}
	low, high, _ := strings.Cut(text, ",")
	from, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	to, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if err1 != nil || err2 != nil || from < 1024 || from > to {
		return ports, fmt.Errorf("%s=%.40q is not used: want LOW,HIGH from 1024 on", PortsVariable, text)
	}
	return [2]uint16{uint16(from), uint16(to)}, nil
}
