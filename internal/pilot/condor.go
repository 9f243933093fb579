package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// linkWait is how long workers of an HTCondor pool wait for corrald to be reached, whom they can do without.
const linkWait = 2 * time.Second

// A joining is how far a supervisor is on its way into an HTCondor pool.
type joining struct {
	release string    // HTCondor's folder
	unuse   func()    // ends its use
	ports   [2]uint16 // at which this node may be dialled; zero: any
	linkBy  time.Time // then it is done without a route to corrald

	negotiate func(broker.Config) // puts into result what comes of it
	running   sync.WaitGroup      // of negotiate
	begun     bool                // negotiate was called
	result    chan negotiated
	choice    *broker.Choice // nil: not made yet
}

// negotiated is how the pool reaches this node, or why it cannot.
type negotiated struct {
	choice broker.Choice
	err    error
}

// errNotInstalled is why a worker of an HTCondor pool does not start that a setup job might help.
var errNotInstalled = errors.New("is not installed at this site")

// prepareJoining finds the HTCondor package that a setup job left at the site. ctx bounds the negotiation that follows.
func (s *supervisor) prepareJoining(ctx context.Context, started time.Time) error {
	p := s.order.Condor
	dir, err := staging.Dir(s.root, packages.Package{Digest: p.Digest})
	if err != nil {
		return fmt.Errorf("package %s: %w", p.Package, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sbin", "condor_master")); err != nil {
		return fmt.Errorf("package %s %w: %w", p.Package, errNotInstalled, err)
	}
	ports, err := parsePorts(os.Getenv(portsVariable))
	if err != nil {
		s.note("%v", err)
	}
	j := &joining{release: dir, ports: ports, unuse: use(s.lg, dir), linkBy: started.Add(linkWait), result: make(chan negotiated, 1)}
	by := started.Add(min(joinTime, time.Duration(s.order.Walltime)/2))
	j.negotiate = func(c broker.Config) {
		j.running.Go(func() { j.result <- negotiate(ctx, c, by) })
	}
	s.joining = j
	return nil
}

// unprepared is the report of a pilot whose workers have no HTCondor. One that is not installed may be, before the next.
func (s *supervisor) unprepared(err error) order.Report {
	r := order.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	if errors.Is(err, errNotInstalled) {
		r.Transient, r.Missing = true, s.order.Condor.Digest
	}
	return r
}

// close waits for the negotiation, whose context is over, and gives the package back.
func (j *joining) close() {
	j.running.Wait()
	j.unuse()
}

// startNegotiation begins to find out how the pool reaches this node, once corrald was reached or is not waited for: it
// can say whether it reaches us.
func (s *supervisor) startNegotiation(now time.Time) {
	j := s.joining
	if j == nil || j.begun || s.link == nil && !s.order.Condor.Attached && now.Before(j.linkBy) {
		return
	}
	c := s.order.Condor
	config := broker.Config{Mode: c.Broker, Collector: c.Collector, CCB: c.CCB, Schedd: c.Schedd, Streams: c.Streams, Ports: j.ports}
	config.Relays, config.DialRelay = s.order.Condor.Relays, poolThrough(s.tag, s.order.Token)
	switch {
	case s.order.Condor.Attached:
		config.CallBack = notAtSchedd
	case s.link != nil:
		config.CallBack = s.link.CallBack
	}
	j.begun = true
	j.negotiate(config)
}

// notAtSchedd stands for corrald, which can only dial from where it is itself.
func notAtSchedd(context.Context, []string, string) (string, error) {
	return "", corral.Errorf(corral.Unavailable, "the schedd of an attached pool may be elsewhere than corrald, which would dial")
}

// negotiate tries until by where that may help: a pool that is being restarted must not cost an attempt its place.
func negotiate(ctx context.Context, c broker.Config, by time.Time) (n negotiated) {
	again := time.NewTicker(redialGap)
	defer again.Stop()
	for {
		n.choice, n.err = broker.Negotiate(ctx, c)
		if n.err == nil || corral.KindOf(n.err) != corral.Unavailable || time.Now().After(by) {
			return n
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return n
		}
	}
}

// negotiations returns the end of the negotiation; nil while there is none.
func (s *supervisor) negotiations() <-chan negotiated {
	if s.joining == nil {
		return nil
	}
	return s.joining.result
}

// takeChoice takes in how the pool reaches this node.
func (s *supervisor) takeChoice(n negotiated) {
	measured := "measured: " + strings.Join(n.choice.Measured, "; ")
	if n.err != nil {
		if s.going == nil {
			if len(n.choice.Measured) > 0 {
				s.say("broker", "no way to the pool was found; "+measured)
			}
			if corral.KindOf(n.err) == corral.Unavailable {
				s.failHere(n.err.Error())
			} else {
				s.fail(false, n.err.Error())
			}
		}
		return
	}
	s.joining.choice = &n.choice
	s.say("broker", n.choice.Reason+"; "+measured)
}

// mayStart reports whether what workers need is there: a route to corrald, whose lease they serve under; or for an
// HTCondor pool the way into it.
func (s *supervisor) mayStart() bool {
	if s.joining == nil {
		return s.link != nil
	}
	return s.joining.choice != nil
}

// orderToJoin is what a worker that is about to start needs for the HTCondor pool; nil for corrald's own. The token is
// read anew each time: corrald replaces it while it waits.
func (s *supervisor) orderToJoin() (*process.JoinOrder, error) {
	j := s.joining
	if j == nil {
		return nil, nil
	}
	secret, err := os.ReadFile(filepath.Join(s.dir, order.PoolToken))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no token for the pool came with the order")
	}
	if err != nil {
		return nil, fmt.Errorf("read the token for the pool: %w", err)
	}
	return &process.JoinOrder{
		Condor: *s.order.Condor, Secret: strings.TrimSpace(string(secret)), Release: j.release, Pool: j.choice.Collector,
		Address: j.choice.Address, Ports: j.ports, Brokers: j.choice.Brokers, Through: j.choice.Relays, Host: s.me.Host,
	}, nil
}
