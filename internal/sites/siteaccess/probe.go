package siteaccess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	probe         = admission.ProbeJob
	probeTime     = 50 * time.Second // for a whole probe, including its time in the site's queue
	probeWalltime = time.Minute      // a probe that is not ended ends by itself
	probeRequest  = "probe.json"     // in the job's directory
	endTime       = 10 * time.Second // for ending a probe
)

// ExitNotFound is the exit status of a shell whose command was not found, as when a job's node cannot see its
// program.
const ExitNotFound = 127

// A Prober measures, with small jobs, properties that are visible only at a site. Its methods may be called
// concurrently. A probe is not an attempt: it has no glidein, waits for no turn, and counts toward no limit. Only its
// tag is recorded, so that it is ended in any case.
type Prober struct {
	lg      *slog.Logger
	db      *store.DB
	reach   *Reach
	address admission.Address

	attended sync.Map // :: tag of a probe attended by a request of this process → true
}

// NewProber returns a Prober whose probes try to reach corrald at address.
func NewProber(lg *slog.Logger, db *store.DB, r *Reach, address admission.Address) *Prober {
	return &Prober{lg: lg, db: db, reach: r, address: address}
}

// A probeReader returns the output that a probe has written so far.
type probeReader func(context.Context) ([]byte, error)

// probe runs a small job at a READY site while attend reads its output. The job's program is the pilot of the site's
// package, and request specifies its task. Regardless of how the probe ends, nothing of it is left.
func (p *Prober) probe(ctx context.Context, site corral.Site, request any, attend func(probeReader) error) error {
	spec, err := probeSpec(site, request)
	if err != nil {
		return err
	}
	access, err := p.reach.Open(ctx, site)
	if err != nil {
		return err
	}
	defer access.Head.Close()
	p.attended.Store(spec.Tag, true)
	defer p.attended.Delete(spec.Tag)
	err = p.db.Owner(site.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error {
		return tx.AddProbe(site.ID, spec.Tag)
	})
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if err := p.End(after, site, access.Pilots, spec.Tag); err != nil {
			p.lg.Warn("a probe may be left at its site for a minute", "site", site.Name, "job", spec.Tag, "err", err)
		}
	}()
	if _, err := access.Pilots.Submit(ctx, spec); err != nil {
		return fmt.Errorf("submitting a probe to site %s: %w", site.Name, err)
	}
	err = attend((&probeOutput{batch: access.Pilots, tag: spec.Tag}).read)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return corral.Errorf(corral.Timeout, "site %s did not run the probe within %s: its queue may be long",
			site.Name, probeTime)
	case err != nil:
		return fmt.Errorf("probing from site %s: %w", site.Name, err)
	}
	return nil
}

// probeSpec describes the job, which runs the pilot of the site's package.
func probeSpec(site corral.Site, request any) (gridsite.JobSpec, error) {
	pilot, err := delivery.PilotProgram(site)
	if err != nil {
		return gridsite.JobSpec{}, err
	}
	text, err := json.Marshal(request)
	if err != nil {
		return gridsite.JobSpec{}, fmt.Errorf("encoding a probe: %w", err) // unreachable: it has only plain fields
	}
	return gridsite.JobSpec{
		Tag: admission.NewTag(probe), Program: pilot, Argv: []string{"probe", "--request", probeRequest},
		Files: map[string][]byte{probeRequest: text}, Hosts: 1, CPUs: 1, Walltime: probeWalltime,
		BatchOptions: Options(site, corral.BatchOptions{}),
	}, nil
}

// errMute is the reason given when a probe fails without printing an error.
var errMute = errors.New("it wrote no reason")

// errUnseen is the reason given when a node cannot see the probe's program, according to the shell's exit status.
var errUnseen = errors.New("the node does not see its program")

// A probeOutput reads the output of a probe.
type probeOutput struct {
	batch gridsite.Batch
	tag   string
	job   gridsite.JobStatus // at the last read
}

// read returns the output that the probe has written so far. It reads the status before the output, so the output
// read after the end is complete. Only the call after that fails, with the probe's own error message if there is one.
func (o *probeOutput) read(ctx context.Context) ([]byte, error) {
	if o.job.Phase == gridsite.Ended {
		said, err := o.batch.Read(ctx, o.tag, "stderr")
		why := errMute
		if len(said) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			why = errors.Join(errors.New(gridsite.OneLine(gridsite.LastLine(said))), err)
		}
		if o.job.Exit != nil && *o.job.Exit == ExitNotFound {
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

// Left returns the tags of the probes at a site that must be ended: those that an earlier corrald left and, when the
// site itself is being left, all of them.
func (p *Prober) Left(ctx context.Context, site corral.Site) (left []string, err error) {
	all, err := store.Read(ctx, p.db.Owner(site.Owner), func(tx *store.Tx) ([]string, error) {
		return tx.Probes(site.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("listing probes: %w", err)
	}
	for _, tag := range all {
		if _, ours := p.attended.Load(tag); !ours || site.State != corral.SiteReady {
			left = append(left, tag)
		}
	}
	return left, nil
}

// End ends a probe at a site: when it returns without an error, nothing is left of the probe at the site or in the
// store.
func (p *Prober) End(ctx context.Context, site corral.Site, batch gridsite.Batch, tag string) error {
	if err := errors.Join(batch.Cancel(ctx, tag, 0), batch.Forget(ctx, tag)); err != nil {
		return fmt.Errorf("ending probe %s: %w", tag, err)
	}
	return p.db.Owner(site.Owner).Write(ctx, store.Actor, func(tx *store.Tx) error { return tx.RemoveProbe(tag) })
}
