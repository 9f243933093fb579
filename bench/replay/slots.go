package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/besteffort"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/portfolio"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
	"github.com/corral-pilot/corral/plan/slot"
)

// A background is a simulated site, whose queue contains the jobs of a trace or of a model.
type background struct {
	jobs, policy string
	cpus         int
	at           seconds
	seed         uint64
}

func (b *background) flags(f *flag.FlagSet) {
	b.at = seconds(7 * 24 * time.Hour)
	f.StringVar(&b.jobs, "background", "", "the jobs of a trace in SWF, `FILE`, or lublin:LOAD")
	f.StringVar(&b.policy, "queue-policy", string(queue.Conservative),
		"serve the queue by `POLICY`: fcfs, easy or conservative")
	f.IntVar(&b.cpus, "cpus", 0, "the machine has `N` cpus (default: as the trace's header says)")
	f.Var(&b.at, "at", "start `D` after the first job")
	f.Uint64Var(&b.seed, "seed", 1, "seed of random numbers")
}

// price is one service unit for a processor for an hour.
const price = 1_000_000

// site returns the simulated site at the instant.
func (b *background) site(ctx context.Context) (*queue.Queue, *market.Advertiser, error) {
	m := queue.Machine{Policy: queue.Discipline(b.policy), Processors: b.cpus}
	if !m.Policy.Valid() {
		return nil, nil, corral.ErrorAt(corral.Invalid, "--queue-policy",
			"%.40q is none of fcfs, easy and conservative", b.policy)
	}
	jobs, err := b.read(ctx, &m)
	if err != nil {
		return nil, nil, err
	}
	if last := jobs[len(jobs)-1].Submit; time.Duration(b.at) > last {
		return nil, nil, corral.ErrorAt(corral.Invalid, "--at", "the last job was submitted after %s", last)
	}
	q := queue.New(m, jobs)
	q.Advance(time.Duration(b.at), nil)
	return q, &market.Advertiser{Name: "simulated", Queue: q, Price: price}, nil
}

// modelled is the number of jobs drawn from the model.
const modelled = 10_000

// read reads or draws the jobs, and completes the machine.
func (b *background) read(ctx context.Context, m *queue.Machine) ([]queue.Job, error) {
	if text, ok := strings.CutPrefix(b.jobs, "lublin:"); ok {
		load, err := strconv.ParseFloat(text, 64)
		if err != nil || !(load > 0 && load <= 2) || m.Processors < 1 {
			return nil, corral.ErrorAt(corral.Invalid, "--background",
				"want lublin:LOAD with a load above 0, of at most 2, and --cpus")
		}
		return workload.Draw(modelled, m.Processors, load, b.seed), nil
	}
	f, err := input.Open(b.jobs)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--background", "%w", errors.Unwrap(err))
	}
	defer f.Close()
	trace, err := workload.ReadJobs(ctx, f, b.jobs)
	if err != nil {
		return nil, err
	}
	if m.Processors == 0 {
		m.Processors, _ = trace.Header.Machine()
	}
	if m.Processors < 1 {
		return nil, corral.ErrorAt(corral.Invalid, "--cpus", "missing: %s does not name its machine's cpus", b.jobs)
	}
	return trace.Jobs, nil
}

// slotsList prints the slots of a simulated site as a file for corral plan --offers.
func slotsList(f *flag.FlagSet) func(context.Context, []string, io.Writer) error {
	b := &background{}
	b.flags(f)
	return func(ctx context.Context, _ []string, stdout io.Writer) error {
		_, site, err := b.site(ctx)
		if err != nil {
			return err
		}
		sites, err := slotted.Ask(site)
		if err != nil {
			return err
		}
		return slot.WriteCSV(stdout, []slot.Offer{sites[0].Offer})
	}
}

// A slotsLine holds the flags of slots plan.
type slotsLine struct {
	background
	search   moga.Options
	tradeoff string
	compare  bool
	job      seconds
	fallback seconds
}

// slotsPlan plans a workflow on the slots of a simulated site, beside best effort in the same queue.
func slotsPlan(f *flag.FlagSet) func(context.Context, []string, io.Writer) error {
	l := &slotsLine{job: seconds(time.Second)}
	l.flags(f)
	f.StringVar(&l.tradeoff, "tradeoff", "0.5", "weigh cost by `A`, makespan by 1-A")
	f.BoolVar(&l.compare, "compare", false, "compare slots with jobs, a pilot, and prices")
	f.Var(&l.job, "job-overhead", "with --compare: a job takes `D` in addition to its task")
	f.Var(&l.fallback, "default-runtime", "a task without an estimate takes `D`")
	f.IntVar(&l.search.Population, "population", 100, "search with a population of `N`")
	f.IntVar(&l.search.Generations, "generations", 10, "search for `N` generations")
	return func(ctx context.Context, files []string, stdout io.Writer) error {
		share, err := ensemble.ParseShare(l.tradeoff)
		if err != nil || share > ensemble.Whole || len(files) != 1 {
			return corral.Errorf(corral.Invalid, "want one workflow file, and a --tradeoff from 0 to 1")
		}
		w, err := read(ctx, files[0], time.Duration(l.fallback))
		if err != nil {
			return err
		}
		l.search.Context, l.search.Seed = ctx, l.seed
		q, site, err := l.site(ctx)
		if err != nil {
			return err
		}
		if l.compare {
			return l.ways(stdout, w, q, share)
		}
		return l.book(stdout, w, q, site, share)
	}
}

// book prints the plan, with the makespan of best effort.
func (l *slotsLine) book(stdout io.Writer, w plan.Work, q *queue.Queue, site slot.Source, share ensemble.Share) error {
	sites, err := slotted.Ask(site)
	if err != nil {
		return err
	}
	p := slotted.Problem{Work: w, Sites: sites}
	b, err := forecast.BookSlots(p, forecast.SlotRequest{TradeOff: share, Search: l.search})
	if err != nil {
		return err
	}
	makespan, err := besteffort.Run(p, []*queue.Queue{q})
	if err != nil {
		return err
	}
	return writeJSON(stdout, struct {
		*forecast.Booking
		BestEffort corral.Seconds `json:"best_effort_s"` // the makespan without slots, each task as a job in the queue
	}{b, corral.Seconds(makespan)})
}

// ways prints the makespan and the cost of each way to get processors.
func (l *slotsLine) ways(stdout io.Writer, w plan.Work, q *queue.Queue, share ensemble.Share) error {
	at := portfolio.Site{Queue: q, Price: price, Job: time.Duration(l.job)}
	all, err := portfolio.Candidates(w, at, share, l.search)
	if err != nil {
		return err
	}
	best := portfolio.Choose(all, all[0].Point, share)
	for _, c := range all {
		mark := ""
		if c == best {
			mark = "\tbest"
		}
		fmt.Fprintf(stdout, "%s\t%d\t%s\t%sSU\t%.3f%s\n", c.Way, c.Width, c.Makespan, c.Cost,
			portfolio.Weigh(c.Point, all[0].Point, share), mark)
	}
	return nil
}
