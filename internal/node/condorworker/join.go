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
	linkWait = 2 * time.Second // for corrald to be reached; workers of an HTCondor pool can do without it
	tryGap   = time.Second     // between two tries to find a way to the pool
)

// A Joining is a supervisor's way into an HTCondor pool, as far as it has been found. First there is the installed
// package (NewJoining); then Begin measures in the background how the pool can reach this node; Found delivers the
// result; once its owner has set Choice there are orders for workers. Its methods belong to one goroutine.
type Joining struct {
	Release string // HTCondor's folder
	order   jobfiles.Order
	ports   [2]uint16 // at which this node may be dialled; zero: any
	linkBy  time.Time // then it no longer waits for a route to corrald
	wayBy   time.Time // then it gives up

	begun  bool
	search sync.WaitGroup
	found  chan Way
	Choice *broker.Choice // how the pool reaches this node; nil: not known yet
}

// A Way is how the pool reaches a node, or why it cannot.
type Way struct {
	Choice broker.Choice
	Err    error
}

// ErrNotInstalled says that the site does not have the HTCondor package. A setup job may install it.
var ErrNotInstalled = errors.New("is not installed at this site")

// NewJoining finds the HTCondor package of the order. Ports is the range that the site gives its jobs, zero: any.
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

// hasMaster looks for the one program of the package that is started from here.
func hasMaster(release string) error {
	_, err := os.Stat(filepath.Join(release, "sbin", "condor_master"))
	return err
}

// Due reports whether Begin may be called: corrald, which can say whether it reaches this node, was reached (linked),
// or is not waited for.
func (j *Joining) Due(now time.Time, linked bool) bool {
	return !j.begun && (linked || j.order.Pilot.Attached() || !now.Before(j.linkBy))
}

// Begin starts to find out how the pool can reach this node. CallBack asks corrald to dial it, and is nil if corrald
// was not reached. The end of ctx ends the search. Close waits for it.
func (j *Joining) Begin(ctx context.Context, callBack broker.CallBack) {
	if j.order.Pilot.Attached() {
		callBack = NotAtSchedd
	}
	c := request(j.order.Tag, *j.order.Pilot, j.ports, callBack)
	j.begun = true
	j.search.Go(func() { j.found <- negotiate(ctx, c, j.wayBy) })
}

// Found delivers the Way once. It is never ready for a nil Joining, that of a pilot of corrald's own pool.
func (j *Joining) Found() <-chan Way {
	if j == nil {
		return nil
	}
	return j.found
}

// Close waits for the search, whose ctx must have ended.
func (j *Joining) Close() { j.search.Wait() }

// Order is what a worker that is about to start needs for the pool; dir is the job's directory. The token is read each
// time: corrald replaces it while the job is queued.
func (j *Joining) Order(dir string) (*process.Join, error) {
	secret, err := os.ReadFile(filepath.Join(dir, jobfiles.PoolToken))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no token for the pool came with the order")
	}
	if err != nil {
		return nil, fmt.Errorf("read the token for the pool: %w", err)
	}
	return &process.Join{
		Secret: strings.TrimSpace(string(secret)), Release: j.Release, Ports: j.ports, Way: *j.Choice,
	}, nil
}

// FindWay is what a host does instead: with the order of its worker it finds how the pool reaches its own node, and
// puts that into the order.
func FindWay(ctx context.Context, o *process.Order, callBack broker.CallBack) (broker.Choice, error) {
	if err := hasMaster(o.Join.Release); err != nil {
		return broker.Choice{}, fmt.Errorf("package %s is not visible there: %w", o.Condor.Package, err)
	}
	c := request(o.Tag, o.Pilot, o.Join.Ports, callBack)
	way := negotiate(ctx, c, time.Now().Add(min(joinTime, o.EndsIn/2)))
	if way.Err != nil {
		return way.Choice, fmt.Errorf("no way to the pool: %w", way.Err)
	}
	o.Join.Way = way.Choice
	return way.Choice, nil
}

// Measured says what was measured, for people.
func Measured(c broker.Choice) string { return "measured: " + strings.Join(c.Measured, "; ") }

// request is what to measure for the pool of an order.
func request(tag string, p jobfiles.Pilot, ports [2]uint16, callBack broker.CallBack) broker.Config {
	c := p.Condor
	return broker.Config{
		Mode: c.Broker, Collector: c.Collector, CCB: c.CCB, Schedd: c.Schedd, Streams: c.Streams, Ports: ports,
		CallBack: callBack, Relays: c.Relays,
		DialRelay: func(ctx context.Context, address string) (net.Conn, error) {
			return relay.Dial(ctx, address, relay.NewRequest(relay.Pool, tag, p.Token))
		},
	}
}

// negotiate tries until by, as long as another try may help: a pool that is being restarted must not cost an attempt
// the node for which it has waited in the batch queue.
func negotiate(ctx context.Context, c broker.Config, by time.Time) (w Way) {
	for {
		w.Choice, w.Err = broker.Negotiate(ctx, c)
		again := corral.KindOf(w.Err) == corral.Unavailable && !time.Now().After(by)
		if !again || !retry.For(ctx, tryGap) {
			return w
		}
	}
}

// NotAtSchedd is the broker.CallBack of a pool that corrald does not run: corrald can only dial from where it is
// itself.
func NotAtSchedd(context.Context, []string, string) (string, error) {
	return "", corral.Errorf(corral.Unavailable,
		"the schedd of an attached pool may be elsewhere than corrald, which would dial")
}

// PortsVariable is the environment variable by which sites of the grid tell programs at which ports others may connect
// to them, as LOW,HIGH.
const PortsVariable = "GLOBUS_TCP_PORT_RANGE"

// SitePorts returns the lowest and the highest port that the site lets others reach; zero: any. With an error, which
// says what the site should have written, the ports are zero too: a pilot goes on without them.
func SitePorts() ([2]uint16, error) { return parsePorts(os.Getenv(PortsVariable)) }

// parsePorts reads LOW,HIGH. Ports below 1024 are not for users.
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
