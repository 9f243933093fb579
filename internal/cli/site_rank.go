package cli

// site rank compares sites for one workflow. corrald provides the limits, the price and the waits of each site; package
// forecast computes the rank in this program, so that the workflow file need not be sent.

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
	"github.com/corral-pilot/corral/workflow/profile"
)

// rankCommand ranks sites for a workflow.
func (v siteVerbs) rankCommand() *cli.Command {
	return &cli.Command{
		Name: "rank",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "site", Usage: "rank `SITE`; may be repeated (default: all)"},
			&cli.IntFlag{Name: "cpus", Value: 1, Usage: "run it on `N` cpus at once"},
			&cli.StringFlag{Name: "by", Value: string(forecast.ByTime), Usage: "rank by `WHAT`: time or cost"},
			durationFlag("default-runtime", 0, "a task without an estimate takes `D`"),
		},
		Action: v.rank,
	}
}

func (v siteVerbs) rank(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return corral.Errorf(corral.Invalid, "name one workflow file")
	}
	in := forecast.RankRequest{CPUs: c.Int("cpus"), By: forecast.RankBy(c.String("by"))}
	var err error
	if in.Work, err = v.estimatedWork(c, c.Args().First()); err != nil {
		return err
	}
	// Errors in the request are reported before corrald is contacted.
	if _, err := forecast.RankSites(in, nil, time.Now()); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	all, err := rankedSites(c, cl, in.Work.Name)
	if err != nil {
		return err
	}
	ranks, err := forecast.RankSites(in, all, time.Now())
	if err != nil {
		return err
	}
	return rankTable.list(v.printer, ranks)
}

// rankedSites returns the named sites, or all sites, with their waits.
func rankedSites(c *cli.Context, cl *api.Client, workflow string) (all []forecast.RankedSite, err error) {
	var sites []corral.Site
	if names := c.StringSlice("site"); len(names) > 0 {
		for _, ref := range names {
			s, err := cl.Site(c.Context, ref)
			if err != nil {
				return nil, err
			}
			sites = append(sites, s)
		}
	} else if sites, err = cl.Sites(c.Context, api.Filter{}); err != nil {
		return nil, err
	}
	speeds, err := learnedSpeeds(c, cl, workflow)
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		waits, err := cl.SiteEachWait(c.Context, s.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, forecast.RankedSite{Site: s, Waits: waits, Speed: speeds[profile.SiteHosts(s.Name)]})
	}
	addLines(c, cl, all)
	return all, c.Context.Err()
}

// addLines adds the present state of the queues of the sites that are ready, each of which takes a command at the site.
// A queue that cannot be seen is left out: its observed waits count.
func addLines(c *cli.Context, cl *api.Client, sites []forecast.RankedSite) {
	var wg sync.WaitGroup
	for i := range sites {
		s := &sites[i]
		if s.State != corral.SiteReady || s.System().Queueless {
			continue
		}
		wg.Go(func() {
			if b, err := cl.SiteBacklog(c.Context, s.Name, ""); err == nil {
				s.Line = queuemodel.Of(b)
			}
		})
	}
	wg.Wait()
}

// maxLearnedRuns is the number of latest runs from which the speeds of sites are learned.
const maxLearnedRuns = 20

// learnedSpeeds returns the relative speeds of sites, learned from the latest runs of a workflow: from the kinds of
// tasks that have run at several sites. Other workflows do not count, because their tasks may differ despite having the
// same names, and neither do runs without a profile.
func learnedSpeeds(c *cli.Context, cl *api.Client, workflow string) (profile.Speeds, error) {
	runs, err := cl.Runs(c.Context, api.Filter{})
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(r corral.Run) bool {
		return r.Workflow != workflow || !r.State.Over() || r.Tasks.Done == 0
	})
	var merged *profile.Profile
	for _, r := range runs[max(0, len(runs)-maxLearnedRuns):] {
		text, err := cl.RunProfile(c.Context, r.ID)
		if err != nil {
			continue
		}
		p, err := profile.ReadJSON(bytes.NewReader(text), "run")
		switch {
		case err != nil:
		case merged == nil:
			merged = p
		default:
			_ = merged.Merge(p) // fails for samples that merged already contains
		}
	}
	if merged == nil || c.Context.Err() != nil {
		return nil, c.Context.Err()
	}
	return merged.Speeds(), nil
}

var rankTable = listing[forecast.Rank]{
	id:   func(r forecast.Rank) string { return r.Site },
	none: "no sites; add one with `corral site create NAME --contact local: --batch fork`",
	columns: []column[forecast.Rank]{
		{"site", func(r forecast.Rank) any { return r.Site }},
		{"queue", func(r forecast.Rank) any { return r.Queue }},
		{"viable", func(r forecast.Rank) any { return r.Viable }},
		{"wait", viable(func(r forecast.Rank) any {
			if r.Wait.Wait == 0 && r.Wait.Source == queueing.SourceGuess {
				return "not known"
			}
			return brief(r.Wait.Wait)
		})},
		{"by waits", viable(func(r forecast.Rank) any { return r.Wait.Waits })},
		{"of", viable(func(r forecast.Rank) any { return r.Wait.Source })},
		{"takes", viable(func(r forecast.Rank) any { return brief(r.Takes) })},
		{"speed", viable(func(r forecast.Rank) any {
			if r.Speed == 0 {
				return "" // the value is not known
			}
			return fmt.Sprintf("%.2f", r.Speed)
		})},
		{"cost", viable(func(r forecast.Rank) any {
			if r.Cost == nil {
				return "not known"
			}
			return priced(*r.Cost)
		})},
		{"lacks", func(r forecast.Rank) any { return r.Lacks }},
	},
}

// viable returns a cell that is empty for a site that is not viable.
func viable(of func(forecast.Rank) any) func(forecast.Rank) any {
	return func(r forecast.Rank) any {
		if !r.Viable {
			return ""
		}
		return of(r)
	}
}
