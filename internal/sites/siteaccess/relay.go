package siteaccess

// A relay on the head node of a site carries connections of the site's workers to corrald and its pools if the workers'
// nodes cannot reach them directly. It is the pilot program with another verb; corrald starts it over its connection to
// the site and communicates with it through stdin and stdout (package broker/relay). It connects only to the two
// targets to which an attempt is admitted: the worker port and the attempt's own pool.
//
// Pure functions of the recorded world decide whether a glidein may or must use the relay. A Relay is the part of a
// site's loop that starts and ends the program accordingly; a goroutine keeps the program running (relayprocess.go) and
// shares only the addresses and the trouble with the loop, under a lock.

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
)

// mayHaveRelay reports whether a glidein's workers get the relay's addresses. With automatic choice they do unless
// their nodes are known to have direct access, and only at sites behind ssh, because other sites share our network.
func mayHaveRelay(w reconcile.World, g corral.Glidein) bool {
	switch {
	case g.Broker == corral.BrokerRelay:
		return true
	case g.Broker != corral.BrokerAuto && g.Broker != "", !strings.HasPrefix(w.Site.Contact, "ssh:"):
		return false
	}
	outbound := reachesOut(w.Site)
	return outbound == nil || !*outbound || poolIsHidden(w, g)
}

// needsRelay reports whether a glidein that may use the relay cannot work without it.
func needsRelay(w reconcile.World, g corral.Glidein) bool {
	if !mayHaveRelay(w, g) {
		return false
	}
	outbound := reachesOut(w.Site)
	return g.Broker == corral.BrokerRelay || outbound != nil && !*outbound || poolIsHidden(w, g)
}

// reachesOut reports whether the site's nodes can reach other machines, or returns nil if that is unknown.
func reachesOut(site corral.Site) *bool {
	if site.Facts == nil {
		return nil
	}
	return site.Facts.Outbound
}

// poolIsHidden reports whether a glidein's pool listens only on a loopback address.
func poolIsHidden(w reconcile.World, g corral.Glidein) bool {
	n, condor := w.Needs[g.Cluster]
	return condor && OnLoopback(n.Cluster.Collector)
}

// relayEndTime limits the wait for the end of a relay, because the site may not answer.
const relayEndTime = 2 * time.Second

// RelayConfig holds the parts of corrald that relays depend on. All fields are required.
type RelayConfig struct {
	Log      *slog.Logger
	Reach    *Reach
	Clusters *admission.Clusters // decides which requests through a relay are admitted, and is notified of changes
	Address  admission.Address   // how admitted requests are connected
}

// A Relay is the relay of one site, as used by the loop that serves the site. It belongs to that goroutine. In each
// step the loop first updates it (Keep), then asks for each attempt to be submitted whether it must wait (Awaited)
// and which addresses it gets (Addresses), and finally records changes (News, Note).
type Relay struct {
	cfg     RelayConfig
	process *process // nil: no attempt needs one
	awaited bool     // by an attempt that is about to be submitted
}

// NewRelay returns a relay that is not running.
func NewRelay(cfg RelayConfig) *Relay { return &Relay{cfg: cfg} }

// Keep starts the relay if a live attempt may have been given its address, even by an earlier corrald, and ends it
// after the last such attempt, unless a glidein waits for it. back means that the site was in trouble until now: a
// lost relay is then restarted at once.
func (r *Relay) Keep(ctx context.Context, w reconcile.World, back bool) {
	wanted := len(w.NoRelay) > 0
	for _, g := range w.Glideins {
		wanted = wanted || len(g.Live()) > 0 && mayHaveRelay(w, g)
	}
	switch {
	case wanted:
		r.start(ctx, w.Site)
		if back {
			r.process.retry()
		}
	case !r.awaited:
		r.End()
	}
	r.awaited = false
}

// start starts the relay's goroutine unless it is running.
func (r *Relay) start(ctx context.Context, site corral.Site) {
	if r.process != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r.process = &process{
		cfg: r.cfg, site: site, cancel: cancel, ended: make(chan struct{}), again: make(chan struct{}, 1),
	}
	go r.process.run(ctx)
}

// End ends the relay, if there is one, without waiting long for a site that does not answer.
func (r *Relay) End() {
	if r.process == nil {
		return
	}
	r.process.cancel()
	patience := time.NewTimer(relayEndTime)
	defer patience.Stop()
	select {
	case <-r.process.ended:
	case <-patience.C:
	}
	r.process = nil
}

// Awaited reports whether an attempt of g that is about to be submitted must wait until the relay has been tried for
// the first time or, if g needs it, tried again. It starts the relay. The next step sees the result.
func (r *Relay) Awaited(ctx context.Context, w reconcile.World, g corral.Glidein) bool {
	if !mayHaveRelay(w, g) {
		return false
	}
	r.start(ctx, w.Site)
	r.awaited = true
	addresses, trouble := r.process.state()
	return len(addresses) == 0 && trouble == "" || trouble != "" && needsRelay(w, g)
}

// Addresses returns the relay's addresses, HOST:PORT, for g's workers, or none if they do not use the relay.
func (r *Relay) Addresses(w reconcile.World, g corral.Glidein) []string {
	if r.process == nil || !mayHaveRelay(w, g) {
		return nil
	}
	addresses, _ := r.process.state()
	return addresses
}

// trouble returns the reason why the relay is not running, or "" if it is running or not wanted.
func (r *Relay) trouble() string {
	if r.process == nil {
		return ""
	}
	_, trouble := r.process.state()
	return trouble
}

// notRunning begins the description of a relay's trouble.
const notRunning = "the site's relay is not running: "

// Lacks returns, for each glidein that needs the relay, the reason why the relay is not running.
func (r *Relay) Lacks(w reconcile.World) map[corral.GlideinID]string {
	trouble := r.trouble()
	if trouble == "" {
		return nil
	}
	lacks := map[corral.GlideinID]string{}
	for _, g := range w.Glideins {
		if g.Asked == corral.AskNothing && needsRelay(w, g) {
			lacks[g.ID] = notRunning + trouble
		}
	}
	return lacks
}

// News reports whether the relay's recorded state differs from its present state.
func (r *Relay) News(site corral.Site) bool { return r.trouble() != site.RelayTrouble }

// Note records why the relay is not running, with the site and in the histories of the glideins that may need it.
func (r *Relay) Note(tx *store.Tx, w reconcile.World) error {
	why := r.trouble()
	_, err := tx.SetSite(w.Site.ID, func(s *corral.Site) { s.RelayTrouble = why })
	errs := []error{err}
	for _, g := range w.Glideins {
		if why != "" && mayHaveRelay(w, g) {
			errs = append(errs, tx.Log(corral.ObjectGlidein, int64(g.ID), "relay", notRunning+why))
		}
	}
	return errors.Join(errs...)
}
