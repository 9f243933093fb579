package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/packages"
)

// A provision holds the parts of a job that can be obtained only through side effects: pushed packages, new tokens,
// open addresses.
type provision struct {
	setup *jobfiles.Setup // for a setup job

	token      admission.Token // for a pilot, to connect to corrald
	secret     string          // for its HTCondor pool; empty: none
	addresses  []string        // where workers connect
	certDigest string          // digest of the certificate presented there
	relays     []string        // HOST:PORT of the site's relay
}

// provide obtains a job's provision without changing the job itself. The error is Hopeless if the job can never obtain
// it, and tokenless if its pool issues no token now.
func (s *sender) provide(ctx context.Context, w turn, job corral.Job) (p provision, err error) {
	switch job.Kind {
	case corral.SetupJob:
		p.setup, err = s.stager.order(ctx, w, job.Package)
		return p, err
	case corral.CleanupJob:
		return p, nil
	}
	g := find(w.Glideins, job.Glidein)
	if g == nil {
		return p, corral.Errorf(corral.NotFound, "the glidein of %s no longer exists", job.Name())
	}
	if p.addresses, p.certDigest, err = s.cfg.Address.For(w.Site); err != nil {
		return p, fmt.Errorf("finding the way in from site %s: %w", w.Site.Name, err)
	}
	p.token, p.relays = s.cfg.Key.Token(job.Tag), s.relay.Addresses(w.World, *g)
	n, ok := w.Needs[g.Cluster]
	if !ok {
		return p, nil
	}
	if n.Digest == "" {
		return p, delivery.Hopeless(n.Unfit)
	}
	p.secret, _, err = s.tokens.mint(ctx, w.now, *g, job)
	return p, err
}

// siteJobWalltime is the time limit of setup and cleanup jobs.
const siteJobWalltime = 10 * time.Minute

// describe describes a job to its site: the pilot binary with the verb for the job's kind, and its order, which is a
// file of the job. It has no effects and depends only on its arguments.
func describe(w reconcile.World, job corral.Job, p provision) (gridsite.JobSpec, error) {
	s := gridsite.JobSpec{
		Tag: job.Tag, Program: delivery.BootProgram(reconcile.SetupSite(w, job.Package)), Hosts: 1, CPUs: 1,
		Walltime:     siteJobWalltime,
		BatchOptions: siteaccess.Options(w.Site, corral.BatchOptions{}), Files: map[string][]byte{},
	}
	o := jobfiles.Order{Tag: job.Tag, Root: w.Site.Root}
	switch job.Kind {
	case corral.SetupJob:
		s.Argv, o.Setup = []string{"setup"}, p.setup
	case corral.CleanupJob:
		s.Argv, o.Cleanup = []string{"cleanup"}, &jobfiles.Cleanup{}
	case corral.PilotJob:
		if err := describePilot(w, job, p, &s, &o); err != nil {
			return s, err
		}
	}
	b, err := o.Encode()
	if err != nil {
		return s, fmt.Errorf("encoding the order of %s: %w", job.Name(), err)
	}
	s.Files[jobfiles.File] = b
	return s, nil
}

// describePilot adds the parts specific to a pilot job: its shape and, in the order, its token and the addresses of
// corrald and, for an HTCondor cluster, of the pool.
func describePilot(w reconcile.World, job corral.Job, p provision, s *gridsite.JobSpec, o *jobfiles.Order) (err error) {
	g := find(w.Glideins, job.Glidein)
	if s.Program, err = delivery.PilotProgram(w.Site); err != nil {
		return err
	}
	s.Argv, s.BatchOptions = []string{"run"}, siteaccess.Options(w.Site, g.BatchOptions)
	s.Hosts, s.CPUs, s.GPUs, s.MemoryMiB, s.Walltime = g.Hosts, g.CPUs, g.GPUs, g.MemoryMiB, time.Duration(g.Walltime)
	o.Pilot = &jobfiles.PilotOrder{
		Token: string(p.token), Addresses: wayIn(*g, p), CertDigest: p.certDigest,
		Shape: g.Shape, Speed: g.Speed, Idle: g.Idle, MinStay: g.MinStay,
	}
	n, ok := w.Needs[g.Cluster]
	if !ok {
		return nil
	}
	s.Files[jobfiles.PoolToken] = []byte(p.secret)
	condor := condorOrder(w.Site, *g, job, n)
	if !n.Cluster.Attached {
		condor.Relays = p.relays
	}
	o.Pilot.Condor = condor
	return nil
}

// wayIn returns the addresses that a glidein's workers try, in this order: corrald's own, unless only the relay is
// requested, and the relay's.
func wayIn(g corral.Glidein, p provision) (addresses []string) {
	if g.Broker != corral.BrokerRelay {
		addresses = append(addresses, p.addresses...)
	}
	for _, r := range p.relays {
		addresses = append(addresses, "relay:"+r)
	}
	return addresses
}

// streamsSince is the first HTCondor version whose collector relays streams between workers and schedds if neither
// accepts connections.
const streamsSince = "25.12.0"

// condorOrder returns the data that workers need to join an HTCondor pool, besides their token. The package is the
// one chosen when the attempt was submitted; if the pool is upgraded while the attempt waits, the workers can still
// join.
func condorOrder(site corral.Site, g corral.Glidein, job corral.Job, n reconcile.Need) *jobfiles.Condor {
	return &jobfiles.Condor{
		Package:   n.Package,
		Digest:    n.Digest,
		Collector: n.Cluster.Collector,
		Broker:    cmp.Or(g.Broker, corral.BrokerAuto),
		CCB:       g.CCB,
		Schedd:    n.Cluster.ScheddAt,
		Streams:   len(g.CCB) == 0 && packages.CompareVersions(n.Version, streamsSince) >= 0, // the pool is not older
		Attached:  n.Cluster.Attached,
		Static:    g.Slots == corral.SlotsStatic,
		Cluster:   n.Cluster.Name,
		Site:      site.Name,
		Glidein:   g.ID,
		Attempt:   job.ID,
	}
}
