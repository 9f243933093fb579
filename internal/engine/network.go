package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	probeTime     = 50 * time.Second // for all of a probe, its time in the site's queue too
	probeHold     = 20 * time.Second // the node can be dialled so long; a probe that is read is ended before
	probeWalltime = time.Minute      // a probe that nobody ends ends by itself
	probeRequest  = "probe.json"     // in the job's directory
)

// ProbeNetwork measures how the pool of a cluster of kind condor would reach workers at a READY site: a small job there
// dials the pool, and is dialled by us. Nothing of it is left; should we die before that, its row has it ended when we
// are back.
func (e *Engine) ProbeNetwork(ctx context.Context, site corral.Site, cluster corral.Cluster) (corral.NetworkProbe, error) {
	p := corral.NetworkProbe{Site: site.Name, Cluster: cluster.Name}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	spec, err := probeSpec(site, cluster)
	if err != nil {
		return p, err
	}
	var findings broker.Findings
	err = e.probe(ctx, site, spec, func(output probeReader) (err error) {
		findings, err = broker.Attend(ctx, output)
		return err
	})
	if err != nil {
		return p, err
	}
	if cluster.Attached { // as its pilots do, for their reason
		findings.Node = broker.Node{Trouble: "the schedd of an attached pool may be elsewhere than corrald, which would dial"}
	}
	choice, none := findings.Decide(corral.BrokerAuto)
	p.Broker, p.Reason, p.Measured = choice.Way, choice.Reason, findings.Lines()
	switch {
	case none != nil && strings.HasPrefix(site.Contact, "ssh:") && !cluster.Attached && onLoopback(cluster.Collector):
		p.Broker = corral.BrokerRelay
		p.Reason = "the pool listens on " + cluster.Collector + ", which no other machine reaches: the site's relay stands for it on each node"
		if site.RelayTrouble != "" {
			p.Broker, p.Reason = "", "the pool listens on "+cluster.Collector+", which no other machine reaches, and the site's relay does not run: "+site.RelayTrouble
		}
	case none != nil:
		p.Reason = none.Error()
	}
	return p, nil
}

// A probeReader returns what a probe has written so far.
type probeReader func(context.Context) ([]byte, error)

// probe has a small job done at a READY site, while attend reads it.
func (e *Engine) probe(ctx context.Context, site corral.Site, spec gridsite.JobSpec, attend func(probeReader) error) error {
	access, err := e.open(ctx, site)
	if err != nil {
		return fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	defer access.Head.Close()
	setOptions(&spec, site, corral.BatchOptions{})
	e.probing.Store(spec.Tag, true)
	defer e.probing.Delete(spec.Tag)
	if err := e.db.Write(ctx, Actor, func(tx *store.Tx) error { return tx.AddProbe(site.ID, spec.Tag) }); err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*cancelGrace)
		defer cancel()
		if err := e.endProbe(after, access.Pilots, spec.Tag); err != nil {
			e.lg.Warn("a probe may be left at its site for a minute", "site", site.Name, "job", spec.Tag, "err", err)
		}
	}()
	if _, err := access.Pilots.Submit(ctx, spec); err != nil {
		return fmt.Errorf("submitting a probe to site %s: %w", site.Name, err)
	}
	err = attend((&probeOutput{batch: access.Pilots, tag: spec.Tag}).read)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return corral.Errorf(corral.Timeout, "site %s did not run the probe within %s: its queue may be long", site.Name, probeTime)
	case err != nil:
		return fmt.Errorf("probing from site %s: %w", site.Name, err)
	}
	return nil
}

// probeSpec describes the job, which the pilot of the site's package does.
func probeSpec(site corral.Site, cluster corral.Cluster) (gridsite.JobSpec, error) {
	pilot, err := pilotProgram(site)
	if err != nil {
		return gridsite.JobSpec{}, err
	}
	request, err := json.Marshal(broker.Probe{Collector: cluster.Collector, Hold: corral.Seconds(probeHold)})
	if err != nil {
		return gridsite.JobSpec{}, fmt.Errorf("encoding a probe: %w", err) // unreachable: it has only strings and a number
	}
	return gridsite.JobSpec{
		Tag: newTag("probe"), Program: pilot,
		Argv: []string{"probe", "--request", probeRequest}, Files: map[string][]byte{probeRequest: request},
		Hosts: 1, CPUs: 1, Walltime: probeWalltime,
	}, nil
}

// errMute is of a probe that complained of nothing.
var errMute = errors.New("it wrote no reason")

// errUnseen is of a probe whose program the node does not see, as the shell says by its exit status.
var errUnseen = errors.New("the node does not see its program")

// A probeOutput is what a probe has written so far.
type probeOutput struct {
	batch gridsite.Batch
	tag   string
	job   gridsite.JobStatus // when it was read last
}

// read fails once the probe has ended and everybody has seen all that it wrote.
func (o *probeOutput) read(ctx context.Context) ([]byte, error) {
	if o.job.Phase == gridsite.Ended {
		said, err := o.batch.Read(ctx, o.tag, "stderr")
		why := errMute
		if len(said) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			why = errors.Join(errors.New(lastLine(said)), err)
		}
		if o.job.Exit != nil && *o.job.Exit == exitNotFound {
			why = fmt.Errorf("%w: %w", errUnseen, why)
		}
		return nil, corral.Errorf(corral.Failed, "the probe ended before it had measured: %w", why)
	}
	known, err := o.batch.Poll(ctx, []string{o.tag})
	if err != nil {
		return nil, err
	}
	o.job = known[o.tag]
	text, err := o.batch.Read(ctx, o.tag, "stdout")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// endProbe has nothing left of a probe.
func (e *Engine) endProbe(ctx context.Context, batch gridsite.Batch, tag string) error {
	if err := errors.Join(batch.Cancel(ctx, tag, 0), batch.Forget(ctx, tag)); err != nil {
		return fmt.Errorf("ending probe %s: %w", tag, err)
	}
	return e.db.Write(ctx, Actor, func(tx *store.Tx) error { return tx.RemoveProbe(tag) })
}

// endProbes ends the probes that an earlier corrald left; and all, once the site is to be left.
func (l *siteLoop) endProbes(ctx context.Context, site corral.Site) error {
	if l.probesEnded && site.State == corral.SiteReady {
		return nil
	}
	var tags []string
	err := l.e.db.View(ctx, func(tx *store.Tx) (err error) {
		tags, err = tx.Probes(site.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("listing probes: %w", err)
	}
	for _, tag := range tags {
		if _, ours := l.e.probing.Load(tag); ours && site.State == corral.SiteReady {
			continue
		}
		if err := l.open(ctx, site); err != nil {
			return err
		}
		if err := l.e.endProbe(ctx, l.access.Pilots, tag); err != nil {
			return err
		}
	}
	l.probesEnded = true
	return nil
}
