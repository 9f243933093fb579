package cli

// While site waits lists the observed waits in a site's queue, site wait predicts from these waits, as probabilities,
// when a pilot of a given shape starts (internal/decide/queueing, Predictor).

import (
	"fmt"
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/queueing"
)

// startOdds is the probability that a pilot of a shape, submitted now, starts within some time.
type startOdds struct {
	Site     string         `json:"site"`
	Queue    string         `json:"queue,omitempty"` // empty: any queue
	Hosts    int            `json:"hosts"`
	CPUs     int            `json:"cpus"` // cpus of each host
	Walltime corral.Seconds `json:"walltime_s"`
	Within   corral.Seconds `json:"within_s"`
	Estimate float64        `json:"estimate"` // the expected probability
	Known    bool           `json:"known"`    // at least one wait supports the estimate
	Bound    float64        `json:"bound"`    // lower bound with 95 % confidence; 0: too few waits
	Likes    int            `json:"like"`     // number of waits of similar pilots on which the estimate is based
	Waits    int            `json:"waits"`    // number of waits observed in the queue
}

// waitCommand predicts from the observed waits of a site how probable it is that a pilot starts in time.
func (v siteVerbs) waitCommand() *cli.Command {
	return sites.verb("wait", func(c *cli.Context, cl *api.Client, ref string) error {
		asked := startOdds{Site: ref, Queue: c.String("queue"), Hosts: c.Int("hosts"), CPUs: c.Int("cpus"),
			Walltime: corral.Seconds(c.Duration("walltime"))}
		within, err := asked.spans(c.String("by"), time.Now())
		if err != nil {
			return err
		}
		waits, err := cl.SiteEachWait(c.Context, ref)
		if err != nil {
			return err
		}
		return oddsTable.list(v.printer, asked.at(within, waits, time.Now()))
	},
		&cli.IntFlag{Name: "hosts", Value: 1, Usage: "of a pilot of `N` hosts"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "`N` cpus of each host"},
		durationFlag("walltime", time.Hour, "that asks for `D`"),
		&cli.StringFlag{Name: "by", Usage: "starts by `TIME`, as in 4h or Friday 17:00 (default: several)"},
		&cli.StringFlag{Name: "queue", Usage: "waits in queue `NAME` (default: in any)"},
	)
}

// spans returns the times for which the command predicts whether the pilot will have started.
func (o startOdds) spans(by string, now time.Time) ([]time.Duration, error) {
	switch {
	case o.Hosts < 1 || o.CPUs < 1 || o.Hosts > math.MaxInt32/o.CPUs:
		return nil, corral.ErrorAt(corral.Invalid, "--hosts", "%d hosts of %d cpus are not a valid pilot", o.Hosts,
			o.CPUs)
	case o.Walltime <= 0:
		return nil, corral.ErrorAt(corral.Invalid, "--walltime", "%s is not a positive time", o.Walltime)
	case by == "":
		const m, h = time.Minute, time.Hour
		return []time.Duration{m, 5 * m, 15 * m, h, 4 * h, 12 * h, 24 * h, 72 * h}, nil
	}
	within, err := fromNow("--by", by, now)
	if err != nil {
		return nil, err
	}
	return []time.Duration{within}, nil
}

// at makes a prediction for each time, based on the waits in the selected queue.
func (o startOdds) at(within []time.Duration, waits []corral.Wait, now time.Time) (all []startOdds) {
	waits = queueing.In(o.Queue, waits)
	p := queueing.NewPredictor(waits, now)
	for _, d := range within {
		one := p.Predict(o.Hosts*o.CPUs, time.Duration(o.Walltime), d)
		o.Within, o.Estimate, o.Known, o.Bound = corral.Seconds(d), one.Estimate, one.Known, one.Bound
		o.Likes, o.Waits = one.Waits, len(waits)
		all = append(all, o)
	}
	return all
}

// fewWaits is the minimum number of waits; estimates based on fewer are marked as unreliable.
const fewWaits = 10

var oddsTable = listing[startOdds]{
	id: func(o startOdds) string { return fmt.Sprint(o.Within) },
	columns: []column[startOdds]{
		{"hosts×cpus", func(o startOdds) any { return fmt.Sprintf("%d×%d", o.Hosts, o.CPUs) }},
		{"walltime", func(o startOdds) any { return short(o.Walltime.String()) }},
		{"starts within", func(o startOdds) any { return short(o.Within.String()) }},
		{"probably", func(o startOdds) any {
			if !o.Known {
				return "not known"
			}
			if o.Waits < fewWaits {
				return percent(o.Estimate) + " (few waits)"
			}
			return percent(o.Estimate)
		}},
		{"at least", func(o startOdds) any { return choose(o.Bound == 0, "not known", percent(o.Bound)) }},
		{"by waits", func(o startOdds) any { return o.Waits }},
		{"like it", func(o startOdds) any { return o.Likes }},
	},
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
