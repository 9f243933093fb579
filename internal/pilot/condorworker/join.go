package condorworker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

const (
	linkWait = 2 * time.Second // for corrald to be reached; workers of an HTCondor pool can do without it
	tryGap   = time.Second     // between two tries to find a way to the pool
)

// A Joining is a supervisor's way into an HTCondor pool, as far as it has been found. First there is the installed
// package (NewJoining); then Begin measures in the background how the pool can reach this node; Found delivers the
// result, which goes to Take; from then on there are orders for workers. Its methods belong to one goroutine.
type Joining struct {
	Release string // HTCondor's folder
	order   order.Order
	ports   [2]uint16 // at which this node may be dialled; zero: any
	linkBy  time.Time // then it no longer waits for a route to corrald
	wayBy   time.Time // then it gives up

	begun  bool
	search sync.WaitGroup
	found  chan Way
	choice *broker.Choice // nil: not known yet
}

// A Way is how the pool reaches a node, or why it cannot.
type Way struct {
	Choice broker.Choice
	Err    error
}

// ErrNotInstalled says that the site does not have the HTCondor package. A setup job may install it.
var ErrNotInstalled = errors.New("is not installed at this site")

// NewJoining finds the HTCondor package of the order. Ports is the range that the site gives its jobs, zero: any.
func NewJoining(o order.Order, ports [2]uint16, started time.Time) (*Joining, error) {
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

func hasMaster(release string) error {
	_, err := os.Stat(filepath.Join(release, "sbin", "condor_master"))
	return err
}

// Due reports whether Begin may be called: corrald, which can say whether it reaches this node, was reached (linked),
// or is not waited for.
func (j *Joining) Due(now time.Time, linked bool) bool {
	return !j.begun && (linked || j.order.Pilot.Condor.Attached || !now.Before(j.linkBy))
}

// Begin starts to find out how the pool can reach this node. CallBack asks corrald to dial it, and is nil if corrald
// was not reached. The end of ctx ends the search. Close waits for it.
func (j *Joining) Begin(ctx context.Context, callBack broker.CallBack) {
	c := request(*j.order.Pilot.Condor, j.ports, j.order.Tag, j.order.Pilot.Token)
	c.CallBack = callBack
	if j.order.Pilot.Condor.Attached {
		c.CallBack = NotAtSchedd
	}
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

// Take records how the pool reaches this node.
func (j *Joining) Take(c broker.Choice) { j.choice = &c }

// Ready reports whether workers can be given orders.
func (j *Joining) Ready() bool { return j.choice != nil }

// Close waits for the search, whose ctx must have ended.
func (j *Joining) Close() { j.search.Wait() }

// Order is what a worker that is about to start needs for the pool; dir is the job's directory. The token is read each
// time: corrald replaces it while the job is queued.
func (j *Joining) Order(dir, host string) (*process.JoinOrder, error) {
	secret, err := os.ReadFile(filepath.Join(dir, order.PoolToken))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no token for the pool came with the order")
	}
	if err != nil {
		return nil, fmt.Errorf("read the token for the pool: %w", err)
	}
	o := &process.JoinOrder{
		Condor: *j.order.Pilot.Condor, Secret: strings.TrimSpace(string(secret)),
		Release: j.Release, Ports: j.ports, Host: host,
	}
	follow(o, *j.choice)
	return o, nil
}

// FindWay is what a host does instead: with the order of its worker it finds how the pool reaches its own node, and
// puts that into the order.
func FindWay(ctx context.Context, o *process.Order, callBack broker.CallBack) (broker.Choice, error) {
	j := o.Condor
	if err := hasMaster(j.Release); err != nil {
		return broker.Choice{}, fmt.Errorf("package %s is not visible there: %w", j.Package, err)
	}
	c := request(j.Condor, j.Ports, o.Tag, o.Token)
	c.CallBack = callBack
	way := negotiate(ctx, c, time.Now().Add(min(joinTime, o.EndsIn/2)))
	if way.Err != nil {
		return way.Choice, fmt.Errorf("no way to the pool: %w", way.Err)
	}
	follow(j, way.Choice)
	return way.Choice, nil
}

// follow has a worker go the way that was found.
func follow(j *process.JoinOrder, c broker.Choice) {
	j.Pool, j.Address, j.Brokers, j.Through = c.Collector, c.Address, c.Brokers, c.Relays
}

// Measured says what was measured, for people.
func Measured(c broker.Choice) string { return "measured: " + strings.Join(c.Measured, "; ") }

// request is what to measure for the pool of an order.
func request(c order.Condor, ports [2]uint16, tag, token string) broker.Config {
	return broker.Config{
		Mode: c.Broker, Collector: c.Collector, CCB: c.CCB, Schedd: c.Schedd, Streams: c.Streams, Ports: ports,
		Relays: c.Relays,
		DialRelay: func(ctx context.Context, address string) (net.Conn, error) {
			return relay.Dial(ctx, address, relay.NewRequest(relay.Pool, tag, token))
		},
	}
}

// negotiate tries until by, as long as another try may help: a pool that is being restarted must not cost an attempt
// its place.
func negotiate(ctx context.Context, c broker.Config, by time.Time) (w Way) {
	again := time.NewTicker(tryGap)
	defer again.Stop()
	for {
		w.Choice, w.Err = broker.Negotiate(ctx, c)
		if w.Err == nil || corral.KindOf(w.Err) != corral.Unavailable || time.Now().After(by) {
			return w
		}
		select {
		case <-again.C:
		case <-ctx.Done():
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
