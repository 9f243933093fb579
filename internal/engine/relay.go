package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	relayPauseMin = 500 * time.Millisecond // before a relay that was lost is started again; it doubles
	relayPauseMax = 15 * time.Second
	relayEndTime  = 2 * time.Second
	relayRoomTime = 5 * time.Second // for the first command beside a relay
)

// A siteRelay keeps a relay on a site's head node, through which the site's workers reach corrald and its pools: it is
// started again when it, or the connection with the site, was lost. The next one has the address of the one before.
type siteRelay struct {
	e      *Engine
	site   corral.Site
	cancel context.CancelFunc
	ended  chan struct{}
	again  chan struct{} // has one when the site is back: then the pause before the next try is over
	own    gridsite.Head // nil: its session is one of the site's connection

	mu        sync.Mutex // guards following
	addresses []string   // HOST:PORT, of the last one; none: it never began
	trouble   string     // why it did not begin, or ended; empty: it runs, or was not tried yet
}

// mayRelay reports whether workers of a glidein get the relay's addresses. Where it is left to us they do unless it is
// known that their nodes have a way of their own, and only through ssh: a site without has our own network.
func mayRelay(site corral.Site, g corral.Glidein, needs map[corral.ClusterID]reconcile.Need) bool {
	if g.Broker == corral.BrokerRelay {
		return true
	}
	if g.Broker != corral.BrokerAuto && g.Broker != "" || !strings.HasPrefix(site.Contact, "ssh:") {
		return false
	}
	outbound := site.Facts != nil && site.Facts.Outbound != nil && *site.Facts.Outbound
	n, condor := needs[g.Cluster]
	return !outbound || condor && onLoopback(n.Cluster.Collector)
}

// needsRelay reports whether a glidein that may have the relay can do nothing without.
func needsRelay(site corral.Site, g corral.Glidein, needs map[corral.ClusterID]reconcile.Need) bool {
	if !mayRelay(site, g, needs) {
		return false
	}
	cutOff := site.Facts != nil && site.Facts.Outbound != nil && !*site.Facts.Outbound
	n, condor := needs[g.Cluster]
	return g.Broker == corral.BrokerRelay || cutOff || condor && onLoopback(n.Cluster.Collector)
}

// onLoopback reports whether a pool listens where only its own machine reaches it.
func onLoopback(collector string) bool {
	a, err := netip.ParseAddrPort(collector)
	return err == nil && a.Addr().IsLoopback()
}

// relayLacks says of each glidein that needs the site's relay why that is not there.
func (l *siteLoop) relayLacks(w reconcile.World) map[corral.GlideinID]string {
	if l.relay == nil {
		return nil
	}
	_, trouble := l.relay.state()
	if trouble == "" {
		return nil
	}
	lacks := map[corral.GlideinID]string{}
	for _, g := range w.Glideins {
		if g.Asked == corral.AskNothing && needsRelay(w.Site, g, w.Needs) {
			lacks[g.ID] = "the site's relay does not run: " + trouble
		}
	}
	return lacks
}

// keepRelay starts the site's relay when there is an attempt that was told of it, as one may that an earlier corrald
// submitted, and ends it after the last of them, unless a glidein waits for it.
func (l *siteLoop) keepRelay(ctx context.Context, w reconcile.World) {
	wanted := len(w.NoRelay) > 0
	for _, g := range w.Glideins {
		wanted = wanted || len(g.Live()) > 0 && mayRelay(w.Site, g, w.Needs)
	}
	switch {
	case wanted:
		l.startRelay(ctx, w.Site)
		if l.lastTrouble != "" { // until now
			l.relay.retry()
		}
	case !l.relayAwaited:
		l.endRelay()
	}
	l.relayAwaited = false
}

func (l *siteLoop) startRelay(ctx context.Context, site corral.Site) {
	if l.relay != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	l.relay = &siteRelay{e: l.e, site: site, cancel: cancel, ended: make(chan struct{}), again: make(chan struct{}, 1)}
	go l.relay.run(ctx)
}

// endRelay ends the relay, if there is one, and does not wait for a site that does not answer.
func (l *siteLoop) endRelay() {
	if l.relay == nil {
		return
	}
	l.relay.cancel()
	patience := time.NewTimer(relayEndTime)
	defer patience.Stop()
	select {
	case <-l.relay.ended:
	case <-patience.C:
	}
	l.relay = nil
}

// awaitsRelay reports whether an attempt that is about to be submitted must wait until the relay was tried for the first
// time. What comes of it for those that need it, the next step knows.
func (l *siteLoop) awaitsRelay(ctx context.Context, w reconcile.World, a reconcile.Action) bool {
	s, ok := a.(reconcile.Submit)
	if !ok || s.Kind != corral.PilotJob {
		return false
	}
	g := find(w.Glideins, s.Glidein)
	if g == nil || !mayRelay(w.Site, *g, w.Needs) {
		return false
	}
	l.startRelay(ctx, w.Site)
	l.relayAwaited = true
	addresses, trouble := l.relay.state()
	return len(addresses) == 0 && trouble == "" || trouble != "" && needsRelay(w.Site, *g, w.Needs)
}

// relayed returns the addresses of the relay that workers of a glidein are told.
func (l *siteLoop) relayed(w reconcile.World, g corral.Glidein) []string {
	if l.relay == nil || !mayRelay(w.Site, g, w.Needs) {
		return nil
	}
	addresses, _ := l.relay.state()
	return addresses
}

// noteRelay records why the site's relay does not run, with the site and in the history of the glideins that may need it.
func (l *siteLoop) noteRelay(ctx context.Context, w reconcile.World) error {
	why := ""
	if l.relay != nil {
		_, why = l.relay.state()
	}
	if why == w.Site.RelayTrouble {
		return nil
	}
	return l.write(ctx, func(tx *store.Tx) error {
		_, err := tx.SetSite(l.id, func(s *corral.Site) { s.RelayTrouble = why })
		errs := []error{err}
		for _, g := range w.Glideins {
			if why != "" && mayRelay(w.Site, g, w.Needs) {
				errs = append(errs, tx.Log(corral.ObjectGlidein, int64(g.ID), "relay", "the site's relay does not run: "+why))
			}
		}
		return errors.Join(errs...)
	})
}

func (r *siteRelay) state() (addresses []string, trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addresses, r.trouble
}

// set records how the relay is doing, and wakes who waits for it.
func (r *siteRelay) set(addresses []string, trouble string) {
	r.mu.Lock()
	changed := r.trouble != trouble || len(r.addresses) == 0 && len(addresses) > 0
	if addresses != nil {
		r.addresses = addresses
	}
	r.trouble = trouble
	r.mu.Unlock()
	if changed {
		r.e.clusters.Notify()
	}
}

// retry ends the pause before the next try, if there is one.
func (r *siteRelay) retry() {
	if _, trouble := r.state(); trouble == "" {
		return
	}
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *siteRelay) run(ctx context.Context) {
	defer close(r.ended)
	defer func() {
		if r.own != nil {
			_ = r.own.Close() // nothing was left to be written
		}
	}()
	for pause := relayPauseMin; ; pause = min(2*pause, relayPauseMax) {
		began := time.Now()
		err := r.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		r.set(nil, oneLine(troubleOf(err).Why))
		if time.Since(began) > relayPauseMax {
			pause = relayPauseMin
		}
		r.e.lg.Warn("the relay is lost", "site", r.site.Name, "err", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-r.again:
			pause = relayPauseMin
		case <-ctx.Done():
			return
		}
	}
}

// serve runs one relay until it is lost; the error says why.
func (r *siteRelay) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdio, err := r.start(ctx)
	if err != nil {
		return err
	}
	defer stdio.Close()
	s, err := relay.Open(ctx, stdio)
	if err != nil {
		if why := stdio.Wait(); why != nil { // what the command says of it is more than that it said nothing else
			return why
		}
		return err
	}
	r.e.lg.Info("the relay serves", "site", r.site.Name, "addresses", s.Addresses)
	if before, _ := r.state(); len(before) > 0 && !slices.Equal(before, s.Addresses) {
		r.e.lg.Warn("the relay has moved: pilots that know only where it was do not come back", "site", r.site.Name, "was", before)
	}
	r.set(s.Addresses, "")
	s.Serve(ctx, r.connect)
	stdio.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(corral.Errorf(corral.Unavailable, "the connection with the relay ended"), stdio.Wait())
}

// start starts the program on the site's connection, and where that has no session to spare, on one of its own.
func (r *siteRelay) start(ctx context.Context) (gridsite.Stream, error) {
	if r.own != nil {
		return r.startAlone(ctx)
	}
	access, err := r.e.open(ctx, r.site)
	if err != nil {
		return nil, fmt.Errorf("reaching the site: %w", err)
	}
	defer access.Head.Close()
	stdio, err := r.startOn(ctx, access.Head)
	if err != nil {
		return nil, err
	}
	beside, cancel := context.WithTimeout(ctx, relayRoomTime)
	defer cancel()
	err = access.Head.Ping(beside)
	if beside.Err() == nil || corral.KindOf(err) != corral.Unavailable { // it began, or else the connection is lost, and the stream with it
		return stdio, nil
	}
	_ = stdio.Close()
	if r.own, err = r.e.cfg.Reach.another(r.site); err != nil {
		return nil, err
	}
	return r.startAlone(ctx)
}

func (r *siteRelay) startOn(ctx context.Context, head gridsite.Head) (gridsite.Stream, error) {
	pilot, err := pilotProgram(r.site)
	if err != nil {
		return nil, err
	}
	runner, ok := head.(gridsite.Runner)
	if !ok {
		return nil, corral.Errorf(corral.Unsatisfiable, "a site with contact %s can have no relay", r.site.Contact)
	}
	return runner.Start(ctx, pilot, "relay", "--root", r.site.Root)
}

func (r *siteRelay) startAlone(ctx context.Context) (gridsite.Stream, error) {
	stdio, err := r.startOn(ctx, r.own)
	var login *gridsite.LoginError
	if errors.As(err, &login) {
		return nil, corral.Errorf(corral.Unavailable, "the sshd there has one session for each connection, commands and the relay need two (MaxSessions 2 in its sshd_config),"+
			" and a second connection is not let in without a person's help: %w", login)
	}
	return stdio, err
}

// connect is the relay's gate: each attempt of the site may be connected with the worker port, and with its own pool.
func (r *siteRelay) connect(ctx context.Context, q relay.Request) (net.Conn, error) {
	collector, err := r.e.clusters.admitThrough(ctx, r.site.ID, q)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if q.Target == relay.Pool {
		nc, err = new(net.Dialer).DialContext(ctx, "tcp", collector)
	} else {
		nc, err = r.e.cfg.Address.Dial(ctx)
	}
	if err != nil {
		r.e.lg.Warn("a relay does not connect", "site", r.site.Name, "target", q.Target, "job", q.Tag, "err", err)
		return nil, corral.Errorf(corral.Unavailable, "corrald does not reach it now")
	}
	return nc, nil
}

// admitThrough decides about a request that came by a site's relay, from what is recorded: the attempt must be one of the
// site's, alive, and its token known to who asks. It returns the address of the attempt's pool, if that may be asked for.
func (c *Clusters) admitThrough(ctx context.Context, site corral.SiteID, q relay.Request) (collector string, err error) {
	var (
		job     corral.Job
		cluster corral.Cluster
		now     time.Time
	)
	err = c.db.View(ctx, func(tx *store.Tx) (err error) {
		now = tx.Now()
		if job, err = tx.JobTagged(q.Tag); err != nil {
			return err
		}
		g, err := tx.GlideinInBrief(job.Glidein)
		if err != nil {
			return err
		}
		cluster, err = tx.Cluster(g.Cluster)
		return err
	})
	place := "attempt " + q.Tag
	switch {
	case corral.KindOf(err) == corral.NotFound, err == nil && (job.Site != site || !q.Proves(job.TokenDigest)):
		return "", corral.ErrorAt(corral.Unauthenticated, place, "is not known here")
	case err != nil:
		return "", corral.Errorf(corral.Unavailable, "corrald cannot look it up now")
	case !job.Live() || now.After(job.TokenEndsAt):
		return "", corral.ErrorAt(corral.Forbidden, place, "is over")
	case q.Target == relay.Pool && (cluster.Kind != corral.Condor || cluster.Attached):
		return "", corral.ErrorAt(corral.Forbidden, place, "its cluster %s has no pool that corrald runs", cluster.Name)
	}
	return cluster.Collector, nil
}
