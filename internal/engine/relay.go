package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

const (
	relayPauseMin = 500 * time.Millisecond // before a relay that was lost is started again; it doubles
	relayPauseMax = 15 * time.Second
	relayEndTime  = 2 * time.Second
)

// A siteRelay keeps a relay on a site's head node, through which the site's workers reach corrald and its pools: it is
// started again when it, or the connection with the site, was lost. The next one has the address of the one before.
type siteRelay struct {
	e      *Engine
	site   corral.Site
	cancel context.CancelFunc
	ended  chan struct{}

	mu        sync.Mutex // guards following
	addresses []string   // HOST:PORT; none: it never began
	trouble   string     // why it did not begin, or ended
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

// onLoopback reports whether a pool listens where only its own machine reaches it.
func onLoopback(collector string) bool {
	a, err := netip.ParseAddrPort(collector)
	return err == nil && a.Addr().IsLoopback()
}

// keepRelay starts the site's relay when there is an attempt that was told of it, as one may that an earlier corrald
// submitted, and ends it after the last of them.
func (l *siteLoop) keepRelay(ctx context.Context, w reconcile.World) {
	wanted := false
	for _, g := range w.Glideins {
		wanted = wanted || len(g.Live()) > 0 && mayRelay(w.Site, g, w.Needs)
	}
	switch {
	case wanted:
		l.startRelay(ctx, w.Site)
	case l.relay != nil && !l.relayAwaited:
		l.relay.end()
		l.relay = nil
	}
	l.relayAwaited = false
}

func (l *siteLoop) startRelay(ctx context.Context, site corral.Site) {
	if l.relay != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	l.relay = &siteRelay{e: l.e, site: site, cancel: cancel, ended: make(chan struct{})}
	go l.relay.run(ctx)
}

// awaitsRelay reports whether an attempt that is about to be submitted must wait until the relay has an address to be
// told. One that may do without waits for the first try only.
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
	return len(addresses) == 0 && (trouble == "" || g.Broker == corral.BrokerRelay)
}

// relayed returns the addresses of the relay that workers of a glidein are told.
func (l *siteLoop) relayed(w reconcile.World, g corral.Glidein) []string {
	if l.relay == nil || !mayRelay(w.Site, g, w.Needs) {
		return nil
	}
	addresses, _ := l.relay.state()
	return addresses
}

// relayTrouble is why glideins wait that are to have a relay; empty if none does.
func (l *siteLoop) relayTrouble() string {
	if l.relay == nil {
		return ""
	}
	addresses, trouble := l.relay.state()
	if len(addresses) > 0 {
		return ""
	}
	return trouble
}

// noteRelay tells, once, why glideins wait for the site's relay.
func (l *siteLoop) noteRelay(ctx context.Context, w reconcile.World) error {
	why := l.relayTrouble()
	if why == l.relayNoted {
		return nil
	}
	l.relayNoted = why
	if why == "" {
		return nil
	}
	return l.e.db.Write(ctx, Actor, func(tx *store.Tx) error {
		var errs []error
		for _, g := range w.Glideins {
			if mayRelay(w.Site, g, w.Needs) {
				errs = append(errs, tx.Log(store.ObjectGlidein, int64(g.ID), "relay", "the site's relay does not start: "+why))
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

// end ends the relay, and does not wait for a site that does not answer.
func (r *siteRelay) end() {
	r.cancel()
	patience := time.NewTimer(relayEndTime)
	defer patience.Stop()
	select {
	case <-r.ended:
	case <-patience.C:
	}
}

func (r *siteRelay) run(ctx context.Context) {
	defer close(r.ended)
	for pause := relayPauseMin; ; pause = min(2*pause, relayPauseMax) {
		began := time.Now()
		err := r.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		r.set(nil, err.Error())
		if time.Since(began) > relayPauseMax {
			pause = relayPauseMin
		}
		r.e.lg.Warn("the relay is lost", "site", r.site.Name, "err", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// serve runs one relay until it is lost; the error says why.
func (r *siteRelay) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := staging.Dir(r.site.Root, packages.Package{Name: r.site.Package, Digest: r.site.PackageDigest})
	if err != nil {
		return err
	}
	access, err := r.e.open(ctx, r.site)
	if err != nil {
		return fmt.Errorf("reaching the site: %w", err)
	}
	defer access.Conn.Close()
	conn, ok := access.Conn.(gridsite.Streamer)
	if !ok {
		return corral.Errorf(corral.Unsatisfiable, "a site with contact %s can have no relay", r.site.Contact)
	}
	stdio, err := conn.Stream(ctx, gridsite.Command{Argv: []string{path.Join(dir, pilotInPackage), "relay", "--root", r.site.Root}})
	if err != nil {
		return err
	}
	defer stdio.Close()
	s, err := relay.Open(ctx, stdio)
	if err != nil {
		return errors.Join(err, stdio.Wait())
	}
	r.e.lg.Info("the relay serves", "site", r.site.Name, "addresses", s.Addresses)
	r.set(s.Addresses, "")
	s.Serve(ctx, r.connect)
	stdio.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(corral.Errorf(corral.Unavailable, "the connection with the relay ended"), stdio.Wait())
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
		g, err := tx.Glidein(job.Glidein)
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
