package main

// The thesis's tables 2.1 and 2.2 show how long a user waits for overhead: setup, allocation, a no-op job, cleanup. The
// same is measured here, with the same terms, at sites on this machine. There is a cold setup, with packages over HTTP,
// and a warm one, with packages that the site can read directly.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// overheads are the times of Juve 2012 §2.3, Tables 2.1 and 2.2, measured with an HTCondor cluster on this machine. All
// are the user's waiting times, in seconds, from the request to the answer.
type overheads struct {
	cluster spread // a pool, until it accepts jobs
	cold    spread // setup with both packages from a mirror over HTTP
	warm    spread // setup with both in corrald's mirror, which is visible to the site
	first   spread // allocation until the slot is registered
	leave   spread // removal of a glidein
	cleanup spread // removal of a site, with all its files
	job     spread // a no-op workflow on a running glidein
	bare    spread // a no-op job with condor_submit on the same slot
	version string // of HTCondor
}

// The thesis's means, for the table: its sites were far away, with other users' jobs in their queues.
const (
	thesisSetup      = "28.4–29.5"
	thesisAllocation = "35.3–97.0"
	thesisCleanup    = "15.0–15.7"
	thesisJob        = "1.6–2.2"
)

// byHTTP makes a corrald serve packages over HTTP, even to sites on its own machine.
var byHTTP = map[string]string{"CORRALD_SUPPLY": "mirrors", "CORRALD_MIRROR_LISTEN": "127.0.0.1:0"}

// measureOverheads measures rounds of everything and publishes the table.
func (p plan) measureOverheads(ctx context.Context, dir string) error {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	m := thisMachine(dir)
	var o overheads
	for name, value := range byHTTP {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	err := p.takeRounds(ctx, filepath.Join(dir, "cold"), &o, o.coldRound)
	for name := range byHTTP {
		err = errors.Join(err, os.Unsetenv(name))
	}
	if err == nil {
		err = p.takeRounds(ctx, filepath.Join(dir, "warm"), &o, o.warmRound)
	}
	if err != nil {
		return err
	}
	return p.publish(m, fmt.Sprintf("; HTCondor %s\n\n%s", o.version, o.markdown()))
}

// takeRounds calls round repeatedly on a separate stand.
func (p plan) takeRounds(
	ctx context.Context, dir string, o *overheads, round func(context.Context, *condorStand, int) error,
) error {
	return p.onCondor(ctx, dir, func(s *condorStand) error {
		o.cluster, o.version = append(o.cluster, s.started.Seconds()), s.cluster.Version
		for i := range p.rounds {
			p.say("%s round %d of %d", filepath.Base(dir), i+1, p.rounds)
			if err := round(ctx, s, i); err != nil {
				return fmt.Errorf("%s round %d: %w", filepath.Base(dir), i+1, err)
			}
		}
		return nil
	})
}

// coldRound measures the setup of a new site, including everything that its first glidein needs there, and leaves
// nothing for the next round.
func (o *overheads) coldRound(ctx context.Context, s *condorStand, round int) error {
	site, g, took, err := s.setUp(ctx, round)
	if err != nil {
		return err
	}
	o.cold = append(o.cold, took.Seconds())
	return errors.Join(s.removeGlidein(ctx, g), s.removeSite(ctx, site))
}

// warmRound measures everything once.
func (o *overheads) warmRound(ctx context.Context, s *condorStand, round int) error {
	site, first, took, err := s.setUp(ctx, round)
	if err != nil {
		return err
	}
	o.warm = append(o.warm, took.Seconds())
	if err := s.removeGlidein(ctx, first); err != nil {
		return err
	}
	var g corral.Glidein
	return errors.Join(
		clocked(&o.first, func() (err error) { g, err = s.allocate(ctx, site); return err }),
		o.jobs(ctx, s, round),
		clocked(&o.leave, func() error { return s.removeGlidein(ctx, g) }),
		clocked(&o.cleanup, func() error { return s.removeSite(ctx, site) }),
	)
}

// jobs measures a no-op job on the running glidein, submitted to Corral and to HTCondor, in turns.
func (o *overheads) jobs(ctx context.Context, s *condorStand, round int) error {
	corrals := func() error { return clocked(&o.job, func() error { return s.runNoop(ctx) }) }
	bare := func() error { return clocked(&o.bare, func() error { return s.submitNoop(ctx, round) }) }
	if round%2 == 0 {
		return errors.Join(corrals(), bare())
	}
	return errors.Join(bare(), corrals())
}

// clocked adds the duration of do to s, if do succeeds.
func clocked(s *spread, do func() error) error {
	from := time.Now()
	err := do()
	if err == nil {
		*s = append(*s, time.Since(from).Seconds())
	}
	return err
}

// markdown returns the report, with the thesis's values for comparison.
func (o overheads) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Overheads on a cluster of kind condor, seconds, %d rounds:\n\n", len(o.warm))
	row := func(name, thesis string, s spread) []string {
		return append(append([]string{name}, s.row("%.2f")...), thesis)
	}
	// The ratio is of medians: a single job waits for the next negotiation, which happens every two seconds.
	ratio := []string{"**workflow ÷ condor_submit**", fmt.Sprintf("%.2f", o.job.median()/o.bare.median()), "", ""}
	table(&b, [][]string{
		{"what", "median", "range", "thesis"},
		row("setup, packages by HTTP (cold)", thesisSetup, o.cold),
		row("setup, packages in corrald's mirror (warm)", thesisSetup, o.warm),
		row("allocation until the slot is registered", thesisAllocation, o.first),
		row("no-op workflow on a standing glidein", thesisJob, o.job),
		row("no-op job by condor_submit on the same", "", o.bare),
		ratio,
		row("removal of the glidein", "", o.leave),
		row("cleanup of the site", thesisCleanup, o.cleanup),
		row("a new pool", "", o.cluster),
	})
	return b.String()
}

// setUp creates a site and waits until everything that a glidein's pilot needs is there. took excludes the pilot
// itself: it ends with the last setup job, which stages HTCondor's package when the site's first glidein needs it.
func (s *condorStand) setUp(
	ctx context.Context, round int,
) (site corral.Site, g corral.Glidein, took time.Duration, err error) {
	from := time.Now()
	name := fmt.Sprintf("bench%d", round)
	if site, err = s.Client.CreateSite(ctx, api.NewSite{Name: name, Contact: "local:", Batch: "fork"}, ""); err != nil {
		return site, g, 0, err
	}
	if site, err = s.Client.WaitSite(ctx, name, string(corral.SiteReady), patience); err != nil {
		return site, g, 0, err
	}
	took = time.Since(from)
	from = time.Now()
	if g, err = s.allocate(ctx, site); err != nil {
		return site, g, 0, err
	}
	events, err := s.Client.SiteTimeline(ctx, name)
	if err != nil {
		return site, g, 0, err
	}
	var staged time.Time // the last setup job installs HTCondor's package
	for _, e := range events {
		if e.Name == "SetupFinished" {
			staged = e.At
		}
	}
	if !staged.After(from) {
		return site, g, 0, errors.New("the first glidein of a site staged nothing")
	}
	return site, g, took + staged.Sub(from), nil
}
