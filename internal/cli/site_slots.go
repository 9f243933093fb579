package cli

// The free capacity in the queues of real sites: slots that delay no other job, and the delay that other times would
// cause. Both are computed in this program, from the queue that the batch system reports.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
	"github.com/corral-pilot/corral/plan/slot"
)

// hourPrice is the price of a processor for an hour if costs are in cpu-hours.
const hourPrice cost.Money = 1_000_000

// readQueue requests the queue of a site, prints a summary, and returns a copy that can be simulated.
func (v slotVerbs) readQueue(c *cli.Context, cl *api.Client, ref string) (*queuemodel.Model, error) {
	b, err := cl.SiteBacklog(c.Context, ref, c.String("queue"))
	if err != nil {
		return nil, err
	}
	held := b.Hidden
	for _, j := range b.Running {
		held += j.Processors
	}
	v.say("%s, queue %s: %d of %s in use; in line: %s; not counted, because held or waiting for a limit: %s", ref,
		b.Queue, held, plural(b.Processors, "cpu"), plural(len(b.Waiting), "job"), plural(b.Ineligible, "job"))
	if b.Hidden > 0 {
		v.say("%s in use by hidden jobs, for an unknown time", plural(b.Hidden, "cpu"))
	}
	m := queuemodel.Of(b)
	for _, r := range b.Reservations {
		v.say("%s %s from %s to %s: %s", choose(r.Maintenance, "maintenance", "reservation"), r.Name, when(r.From),
			when(r.To), plural(len(r.Nodes), "node"))
	}
	for _, note := range slices.Concat(m.Notes, b.Notes) {
		v.say("%s", note)
	}
	return m, nil
}

// queueLimits returns the known limits of the site's queue that the flags select.
func queueLimits(c *cli.Context, cl *api.Client, ref string) (corral.SiteQueue, error) {
	site, err := cl.Site(c.Context, ref)
	if err != nil {
		return corral.SiteQueue{}, err
	}
	q, _ := site.Facts.In(cmp.Or(c.String("queue"), site.Queue))
	return q, nil
}

// liveSlots returns the free slots of a real site; their times are relative to now. No slot is longer than the queue's
// limit, and no task is wider than a node.
func (v slotVerbs) liveSlots(c *cli.Context, cl *api.Client, ref string) (slot.Source, error) {
	limit, err := queueLimits(c, cl, ref)
	if err != nil {
		return nil, err
	}
	q, err := v.readQueue(c, cl, ref)
	if err != nil {
		return nil, err
	}
	room := q.Room()
	o := slot.Offer{Site: ref, Processors: room.Processors(), Slots: market.Levels(room, 0, hourPrice, market.Ahead)}
	for i := range o.Slots {
		// A pilot is at most as long as the queue's limit, even if there is room for a longer one.
		s := &o.Slots[i]
		if most := time.Duration(limit.MaxWalltime); most > 0 && s.Length > most {
			s.Length, s.Extensible = most, false
		}
	}
	if limit.CPUs > 0 {
		o.Processors = min(o.Processors, limit.CPUs)
	}
	return slot.Fixed(o), nil
}

func siteQueueFlag() cli.Flag {
	return &cli.StringFlag{Name: "queue", Usage: "look at queue `NAME` (default: the site's own)"}
}

// slotsCommand lists the free slots of a site.
func (v siteVerbs) slotsCommand() *cli.Command {
	return sites.verb("slots", func(c *cli.Context, cl *api.Client, ref string) error {
		source, err := slotVerbs(v).liveSlots(c, cl, ref)
		if err != nil {
			return err
		}
		return slotVerbs(v).show(c.Bool("csv"), source)
	}, siteQueueFlag(), &cli.BoolFlag{Name: "csv", Usage: "print them as a file of slots"})
}

// checkQueueLimits refuses a pilot that exceeds the known limits of the queue, which would never start it.
func checkQueueLimits(c *cli.Context, cl *api.Client, ref string) error {
	limit, err := queueLimits(c, cl, ref)
	switch most := time.Duration(limit.MaxWalltime); {
	case err != nil:
		return err
	case most > 0 && c.Duration("walltime") > most:
		return corral.ErrorAt(corral.Unsatisfiable, "--walltime", "%s exceeds %s, the limit of queue %s",
			c.Duration("walltime"), most, limit.Name)
	case limit.CPUs > 0 && c.Int("cpus") > limit.CPUs:
		return corral.ErrorAt(corral.Unsatisfiable, "--cpus", "%d exceed %d, the cpus of the largest node of queue %s",
			c.Int("cpus"), limit.CPUs, limit.Name)
	}
	return nil
}

// A quote is a time at which a pilot could obtain its processors, together with the cost to other jobs.
type quote struct {
	Start     corral.Seconds `json:"start_s"` // relative to now
	StartsAt  time.Time      `json:"starts_at"`
	CPUHours  cost.Money     `json:"cpu_hours"`
	WaitHours cost.Money     `json:"wait_cpu_hours"` // additional waits of other jobs, times their cpus
}

// priceCommand lists the times at which a pilot could obtain its processors, and how long each of these times would
// delay waiting jobs.
func (v siteVerbs) priceCommand() *cli.Command {
	return sites.verb("price", func(c *cli.Context, cl *api.Client, ref string) error {
		now := time.Now().UTC().Truncate(time.Second)
		hosts, cpus, length := c.Int("hosts"), c.Int("cpus"), c.Duration("walltime")
		switch {
		case hosts < 1 || cpus < 1 || hosts > math.MaxInt32/cpus:
			return corral.ErrorAt(corral.Invalid, "--hosts", "%d hosts of %d cpus are not a valid pilot", hosts, cpus)
		case length < time.Second:
			return corral.ErrorAt(corral.Invalid, "--walltime", "%s is less than a second", length)
		case c.IsSet("start") && c.IsSet("not-before"):
			return corral.ErrorAt(corral.Invalid, "--not-before", "cannot be used with --start")
		}
		start, err := fromNow("--start", c.String("start"), now)
		if err != nil {
			return err
		}
		from, err := fromNow("--not-before", c.String("not-before"), now)
		if err != nil {
			return err
		}
		if err := checkQueueLimits(c, cl, ref); err != nil {
			return err
		}
		q, err := slotVerbs(v).readQueue(c, cl, ref)
		if err != nil {
			return err
		}
		pilot := queuemodel.Request{Hosts: hosts, CPUs: cpus, Walltime: length.Truncate(time.Second)}
		var all []slot.Slot
		if c.IsSet("start") {
			if most := q.Room().Processors(); hosts*cpus > most {
				return corral.Errorf(corral.Unsatisfiable, "the queue has %d cpus", most)
			}
			one, ok := q.Quote(start, pilot, hourPrice)
			if !ok {
				return corral.Errorf(corral.Unsatisfiable,
					"running jobs or reservations hold too many cpus at that time: leave out --start to list times")
			}
			all = []slot.Slot{one}
		} else if all = q.Quotes(from, pilot, hourPrice, maxQuotes(q.Nodes(), q.Waiting())); len(all) == 0 {
			return corral.Errorf(corral.Unsatisfiable, "the queue never has %d cpus for %s", hosts*cpus, length)
		}
		return quoteTable.list(v.printer, quotes(all, now))
	}, siteQueueFlag(),
		&cli.IntFlag{Name: "hosts", Value: 1, Usage: "for a pilot of `N` hosts"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "`N` cpus of each host"},
		durationFlag("walltime", time.Hour, "for `D`"),
		&cli.StringFlag{Name: "start", Usage: "from `TIME` on, as in 4h or Friday 17:00"},
		&cli.StringFlag{Name: "not-before", Usage: "from `TIME` on or later (default: from now on)"},
	)
}

// maxQuotes returns the maximum number of starts to price, because each of them requires a plan of all waiting jobs on
// all nodes.
func maxQuotes(nodes, waiting int) int {
	const most, fewest, planned = 50, 5, 400_000
	return max(fewest, min(most, planned/max(1, nodes*waiting)))
}

// quotes returns a quote for each slot: its start, both as clock time and relative to now, and its costs in the pilot's
// own processor time and in the processor time of other jobs.
func quotes(all []slot.Slot, now time.Time) (some []quote) {
	for _, s := range all {
		work := slot.Charge(s.Price, int64(s.Processors)*s.Length.Milliseconds())
		some = append(some, quote{corral.Seconds(s.Start), now.Add(s.Start), work, s.Fee})
	}
	return some
}

var quoteTable = listing[quote]{
	id: func(q quote) string { return fmt.Sprint(q.Start) },
	columns: []column[quote]{
		{"start", func(q quote) any { return when(q.StartsAt) }},
		{"in", func(q quote) any { return brief(q.Start) }},
		{"cpu-hours", func(q quote) any { return q.CPUHours }},
		{"others wait, cpu-hours", func(q quote) any { return choose(q.WaitHours == 0, "none", q.WaitHours) }},
	},
}
