package main

// Many glideins with one slot join one pool, all on this machine. Their duration and their cost are measured: memory is
// proportional (PSS), so that pages shared by many processes are counted once.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// crowdJobs is the number of no-op jobs for each glidein of a crowd.
const crowdJobs = 2

// A crowd contains the measurements of many glideins in one pool.
type crowd struct {
	glideins   int
	registered time.Duration // from the first request until all slots are in the pool
	answered   time.Duration // until all requests were answered
	jobs       int
	done       time.Duration    // from condor_submit until the last job's end
	memory     map[string]int64 // KiB, proportional, by program, for all processes
	left       time.Duration    // from the first removal until all have ended
}

// measureGlideins makes many one-slot glideins join one pool, submits jobs, and publishes the table.
func (p plan) measureGlideins(ctx context.Context, dir string) error {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	m := thisMachine(dir)
	var c crowd
	var version string
	err := p.onCondor(ctx, filepath.Join(dir, "g"), func(s *condorStand) error {
		version = s.cluster.Version
		site, first, _, err := s.setUp(ctx, 0) // so that everything has already been staged
		if err != nil {
			return err
		}
		if err := s.removeGlidein(ctx, first); err != nil {
			return err
		}
		return c.measure(ctx, s, site, p.count)
	})
	if err != nil {
		return err
	}
	return p.publish(m, fmt.Sprintf("; HTCondor %s\n\n%s", version, c.markdown()))
}

// measure starts the crowd, runs jobs, and removes the crowd. It waits for each glidein in turn, because the last one
// counts.
func (c *crowd) measure(ctx context.Context, s *condorStand, site corral.Site, count int) error {
	from := time.Now()
	var all []corral.Glidein
	for range count {
		g, err := s.askSlot(ctx, site, 64)
		if err != nil {
			return err
		}
		all = append(all, g)
	}
	c.glideins, c.answered = count, time.Since(from)
	for _, g := range all {
		if _, err := s.Client.WaitGlidein(ctx, g.ID, api.UntilWorkers, 10*patience); err != nil {
			return err
		}
	}
	c.registered = time.Since(from)
	c.memory = memoryBelow(s.Corrald.Layout.Cache)
	c.jobs = count * crowdJobs
	from = time.Now()
	if err := s.submit(ctx, "crowd.log", 16, c.jobs); err != nil {
		return err
	}
	if _, err := s.condor(ctx, "condor_wait", "crowd.log"); err != nil {
		return err
	}
	c.done = time.Since(from)
	from = time.Now()
	for _, g := range all {
		if _, err := s.Client.RemoveGlidein(ctx, g.ID, true); err != nil {
			return err
		}
	}
	for _, g := range all {
		if _, err := s.Client.WaitGlidein(ctx, g.ID, string(corral.GlideinDeleted), 10*patience); err != nil {
			return err
		}
	}
	c.left = time.Since(from)
	return nil
}

// memoryBelow sums the proportional memory of the processes whose program is below dir: pilots and what they started
// there. :: program → KiB
func memoryBelow(dir string) map[string]int64 {
	sums := map[string]int64{}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		program, err := os.Readlink(filepath.Join(p, "exe"))
		if err != nil || !strings.HasPrefix(program, dir) {
			continue
		}
		for line := range strings.Lines(read(filepath.Join(p, "smaps_rollup"))) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				if kib, err := strconv.ParseInt(strings.Trim(rest, " \tkB\n"), 10, 64); err == nil {
					sums[filepath.Base(program)] += kib
				}
			}
		}
	}
	return sums
}

// markdown returns the report. Programs that do not belong to a glidein, such as the shells of the site, are omitted.
func (c crowd) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d glideins of one slot in one pool, all on this machine:\n\n", c.glideins)
	rows := [][]string{
		{"what", "measured"},
		{"all requests answered", c.answered.Round(10 * time.Millisecond).String()},
		{"all slots registered", c.registered.Round(10 * time.Millisecond).String()},
		{
			fmt.Sprintf("%d no-op jobs by condor_submit", c.jobs),
			fmt.Sprintf("%s, %.1f/s", c.done.Round(10*time.Millisecond), float64(c.jobs)/c.done.Seconds()),
		},
		{"all removed", c.left.Round(10 * time.Millisecond).String()},
	}
	var sum int64
	for _, program := range []string{"pilot", "condor_master", "condor_startd", "condor_procd", "condor_starter"} {
		if kib := c.memory[program]; kib > 0 {
			rows = append(rows, []string{"memory of a glidein, " + program, mebibytes(kib, c.glideins)})
			sum += kib
		}
	}
	table(&b, append(rows, []string{"memory of a glidein, all", mebibytes(sum, c.glideins)}))
	return b.String()
}

// mebibytes returns one glidein's share of kib KiB.
func mebibytes(kib int64, glideins int) string {
	return fmt.Sprintf("%.1f MiB", float64(kib)/1024/float64(glideins))
}
