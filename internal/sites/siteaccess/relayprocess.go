package siteaccess

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/delivery"
)

const (
	pauseMin = 500 * time.Millisecond // before a lost relay is started again; the pause doubles
	pauseMax = 15 * time.Second
	roomTime = 5 * time.Second // for the first command beside a relay
)

// A process runs the relay of one site while it is wanted. Its goroutine, run, restarts the program when the program
// or the connection to the site is lost. A restarted relay keeps the address of the previous one.
type process struct {
	cfg    RelayConfig
	site   corral.Site
	cancel context.CancelFunc
	ended  chan struct{}
	again  chan struct{} // receives a value when the site is reachable again, which ends the pause before the next try
	own    gridsite.Head // nil: its session uses the site's connection

	mu        sync.Mutex // guards the fields below
	addresses []string   // HOST:PORT of the last relay; none: it never started
	trouble   string     // why the relay did not start, or ended; empty: it runs, or was not tried yet
}

// state returns the addresses of the last relay that started, and its present trouble.
func (r *process) state() (addresses []string, trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addresses, r.trouble
}

// set updates the relay's state and wakes the callers that wait for it.
func (r *process) set(addresses []string, trouble string) {
	r.mu.Lock()
	changed := r.trouble != trouble || len(r.addresses) == 0 && len(addresses) > 0
	if addresses != nil {
		r.addresses = addresses
	}
	r.trouble = trouble
	r.mu.Unlock()
	if changed {
		r.cfg.Clusters.Notify()
	}
}

// retry ends the pause before the next try, if there is one.
func (r *process) retry() {
	if _, trouble := r.state(); trouble == "" {
		return
	}
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// run keeps a relay running until ctx ends: after each loss it pauses, longer each time.
func (r *process) run(ctx context.Context) {
	defer close(r.ended)
	defer func() {
		if r.own != nil {
			_ = r.own.Close() // there was nothing left to write
		}
	}()
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		began := time.Now()
		err := r.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		r.set(nil, Note(Trouble(err, began).Why))
		if time.Since(began) > pauseMax {
			pause = pauseMin
		}
		r.cfg.Log.Warn("the relay is lost", "site", r.site.Name, "err", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-r.again:
			pause = pauseMin
		case <-ctx.Done():
			return
		}
	}
}

// serve runs one relay until it is lost; the error gives the reason. The program first writes the addresses on which it
// listens: before that it is not known to run at the site.
func (r *process) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdio, err := r.start(ctx)
	if err != nil {
		return err
	}
	defer stdio.Close()
	s, err := relay.Open(ctx, stdio)
	if err != nil {
		if why := stdio.Wait(); why != nil { // the command's own error is more informative
			return why
		}
		return err
	}
	r.cfg.Log.Info("the relay serves", "site", r.site.Name, "addresses", s.Addresses)
	if before, _ := r.state(); len(before) > 0 && !slices.Equal(before, s.Addresses) {
		r.cfg.Log.Warn("the relay's address has changed: pilots that only know the old one cannot reconnect",
			"site", r.site.Name, "was", before)
	}
	r.set(s.Addresses, "")
	s.Serve(ctx, r.connect)
	stdio.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(corral.Errorf(corral.Unavailable, "the connection with the relay ended"), stdio.Wait())
}

// start starts the program on the site's connection or, if that allows no further session, on a separate one. The limit
// becomes apparent only when another command is tried beside the relay, because sshd may accept the session and then
// end it.
func (r *process) start(ctx context.Context) (gridsite.Stream, error) {
	if r.own != nil {
		return r.startAlone(ctx)
	}
	access, err := r.cfg.Reach.Open(ctx, r.site)
	if err != nil {
		return nil, err
	}
	defer access.Head.Close()
	stdio, err := r.startOn(ctx, access.Head)
	if err != nil {
		return nil, err
	}
	beside, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	err = access.Head.Ping(beside)
	if beside.Err() == nil || corral.KindOf(err) != corral.Unavailable {
		return stdio, nil // it started, or the connection is lost, and the stream with it
	}
	_ = stdio.Close()
	if r.own, err = r.cfg.Reach.Another(r.site); err != nil {
		return nil, err
	}
	return r.startAlone(ctx)
}

// startOn starts the program through a head of the site. The program is the pilot, which every site has after its
// setup.
func (r *process) startOn(ctx context.Context, head gridsite.Head) (gridsite.Stream, error) {
	pilot, err := delivery.PilotProgram(r.site)
	if err != nil {
		return nil, err
	}
	runner, ok := head.(gridsite.Runner)
	if !ok {
		return nil, corral.Errorf(corral.Unsatisfiable, "a site with contact %s can have no relay", r.site.Contact)
	}
	return runner.Start(ctx, pilot, "relay", "--root", r.site.Root)
}

// startAlone starts the program on its own connection.
func (r *process) startAlone(ctx context.Context) (gridsite.Stream, error) {
	stdio, err := r.startOn(ctx, r.own)
	if login, ok := errors.AsType[*gridsite.LoginError](err); ok {
		return nil, corral.Errorf(corral.Unavailable, "the sshd there has one session for each connection, commands "+
			"and the relay need two (MaxSessions 2 in its sshd_config), and a second connection is not let in without "+
			"a person's help: %w", login)
	}
	return stdio, err
}

// connect is the relay's gate: each attempt of the site may connect to the worker port and to its own pool. Any
// client that can reach the relay is on the site's network and need not be ours. Errors are sent back to the client, so
// they state only that it is not admitted, or that corrald cannot connect it now.
func (r *process) connect(ctx context.Context, q relay.Request) (net.Conn, error) {
	collector, err := r.cfg.Clusters.AdmitThrough(ctx, r.site.ID, q)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if q.Target == relay.Pool {
		nc, err = new(net.Dialer).DialContext(ctx, "tcp", collector)
	} else {
		nc, err = r.cfg.Address.Dial(ctx)
	}
	if err != nil {
		r.cfg.Log.Warn("a relay cannot connect",
			"site", r.site.Name, "target", q.Target, "job", q.Tag, "err", err)
		return nil, corral.Errorf(corral.Unavailable, "corrald does not reach it now")
	}
	return nc, nil
}
