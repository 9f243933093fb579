package siterelay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/gate"
	"github.com/corral-pilot/corral/internal/reach"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
)

// endTime is how long the end of a relay is waited for: a site that does not answer keeps nobody.
const endTime = 2 * time.Second

// Config says what relays need of corrald. All fields are required.
type Config struct {
	Log      *slog.Logger
	Reach    *reach.Reach
	Clusters *gate.Clusters // decides which requests through a relay are admitted, and is told of changes
	Address  gate.Address   // what they are connected with
}

// A Relay is the relay of one site as the loop that serves the site sees it. It belongs to that goroutine.
type Relay struct {
	cfg     Config
	process *process // nil: no attempt needs one
	awaited bool     // by an attempt that is about to be submitted
}

// New returns a relay that does not run.
func New(cfg Config) *Relay { return &Relay{cfg: cfg} }

// Keep starts the relay when there is an attempt that was told of it, as one may that an earlier corrald submitted, and
// ends it after the last of them, unless a glidein waits for it. back says that the site was in trouble until now: then
// a relay that was lost is tried at once.
func (r *Relay) Keep(ctx context.Context, w reconcile.World, back bool) {
	wanted := len(w.NoRelay) > 0
	for _, g := range w.Glideins {
		wanted = wanted || len(g.Live()) > 0 && may(w, g)
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

// start starts the relay's goroutine, unless it runs.
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

// End ends the relay, if there is one, and does not wait for a site that does not answer.
func (r *Relay) End() {
	if r.process == nil {
		return
	}
	r.process.cancel()
	patience := time.NewTimer(endTime)
	defer patience.Stop()
	select {
	case <-r.process.ended:
	case <-patience.C:
	}
	r.process = nil
}

// Awaited reports whether an attempt of g that is about to be submitted must wait until the relay was tried for the
// first time, or tried again if g needs it. It starts the relay. What comes of it the next step knows.
func (r *Relay) Awaited(ctx context.Context, w reconcile.World, g corral.Glidein) bool {
	if !may(w, g) {
		return false
	}
	r.start(ctx, w.Site)
	r.awaited = true
	addresses, trouble := r.process.state()
	return len(addresses) == 0 && trouble == "" || trouble != "" && needs(w, g)
}

// Addresses returns the addresses of the relay, HOST:PORT, that workers of g are told; none if they are told of none.
func (r *Relay) Addresses(w reconcile.World, g corral.Glidein) []string {
	if r.process == nil || !may(w, g) {
		return nil
	}
	addresses, _ := r.process.state()
	return addresses
}

// trouble is why the relay does not run; empty if it runs, or is not wanted.
func (r *Relay) trouble() string {
	if r.process == nil {
		return ""
	}
	_, trouble := r.process.state()
	return trouble
}

// notRunning begins what is said of a relay with a trouble.
const notRunning = "the site's relay does not run: "

// Lacks says of each glidein that needs the relay why that is not there.
func (r *Relay) Lacks(w reconcile.World) map[corral.GlideinID]string {
	trouble := r.trouble()
	if trouble == "" {
		return nil
	}
	lacks := map[corral.GlideinID]string{}
	for _, g := range w.Glideins {
		if g.Asked == corral.AskNothing && needs(w, g) {
			lacks[g.ID] = notRunning + trouble
		}
	}
	return lacks
}

// News reports whether something else is recorded of the relay than what is true now.
func (r *Relay) News(site corral.Site) bool { return r.trouble() != site.RelayTrouble }

// Note records why the relay does not run, with the site and in the history of the glideins that may need it.
func (r *Relay) Note(tx *store.Tx, w reconcile.World) error {
	why := r.trouble()
	_, err := tx.SetSite(w.Site.ID, func(s *corral.Site) { s.RelayTrouble = why })
	errs := []error{err}
	for _, g := range w.Glideins {
		if why != "" && may(w, g) {
			errs = append(errs, tx.Log(corral.ObjectGlidein, int64(g.ID), "relay", notRunning+why))
		}
	}
	return errors.Join(errs...)
}
