package cli

// plan --offers and plan --slots plan a workflow on slots that sites offer; the plan is made in this program, not in
// corrald. The offers are from a file, or from real sites (site_slots.go).

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/slot"
)

// slotVerbs are the verbs for slots of processors.
type slotVerbs struct{ *printer }

// sources returns the sources of slots that the flags specify.
func (v slotVerbs) sources(c *cli.Context) (sources []slot.Source, err error) {
	live := c.StringSlice("site")
	switch {
	case c.Bool("slots") && len(live) == 0:
		return nil, corral.ErrorAt(corral.Invalid, "--slots", "requires --site, whose free slots it uses")
	case !c.Bool("slots") && len(live) > 0:
		return nil, corral.ErrorAt(corral.Invalid, "--site", "requires --slots beside --offers")
	}
	if sources, err = v.liveSources(c, live); err != nil {
		return nil, err
	}
	for _, file := range c.StringSlice("offers") {
		f, err := input.Open(file)
		if err != nil {
			return nil, corral.ErrorAt(corral.Invalid, file, "%w", errors.Unwrap(err))
		}
		all, err := slot.ReadCSV(f, file)
		f.Close()
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			sources = append(sources, slot.Fixed(o))
		}
	}
	return sources, nil
}

// liveSources returns the sources of slots at real sites.
func (v slotVerbs) liveSources(c *cli.Context, sites []string) (sources []slot.Source, err error) {
	if len(sites) == 0 {
		return nil, nil
	}
	for i, ref := range sites {
		if slices.Contains(sites[:i], ref) {
			return nil, corral.ErrorAt(corral.Invalid, "--site", "%s is named twice", ref)
		}
	}
	cl, err := connect(c)
	if err != nil {
		return nil, err
	}
	for _, ref := range sites {
		source, err := v.liveSlots(c, cl, ref)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// An offeredSlot is a line of a list of slots.
type offeredSlot struct {
	Site       string         `json:"site"`
	Slot       int            `json:"slot"`
	Processors int            `json:"processors"`
	Start      corral.Seconds `json:"start_s"`
	Length     corral.Seconds `json:"length_s"`
	Price      cost.Money     `json:"price"`
	Fee        cost.Money     `json:"fee"`
	Divisible  bool           `json:"divisible"`
	Extensible bool           `json:"extensible"`
}

// show lists the slots of one source.
func (v slotVerbs) show(csv bool, source slot.Source) error {
	sites, err := slotted.Ask(source)
	if err != nil {
		return err
	}
	var all []offeredSlot
	var offers []slot.Offer
	for _, o := range sites {
		offers = append(offers, o.Offer)
		for i, s := range o.Slots {
			all = append(all, offeredSlot{o.Site, i + 1, s.Processors, corral.Seconds(s.Start - o.At),
				corral.Seconds(s.Length), s.Price, s.Fee, s.Divisible, s.Extensible})
		}
	}
	if csv {
		return slot.WriteCSV(v.out, offers)
	}
	return slotTable.list(v.printer, all)
}

var slotTable = listing[offeredSlot]{
	id:   func(s offeredSlot) string { return fmt.Sprint(s.Slot) },
	none: "no slots are offered: all processors are taken indefinitely",
	columns: []column[offeredSlot]{
		{"site", func(s offeredSlot) any { return s.Site }},
		{"slot", func(s offeredSlot) any { return s.Slot }},
		{"processors", func(s offeredSlot) any { return s.Processors }},
		{"start", func(s offeredSlot) any { return brief(s.Start) }},
		{"length", func(s offeredSlot) any { return brief(s.Length) }},
		{"price", func(s offeredSlot) any { return s.Price }},
		{"fee", func(s offeredSlot) any { return s.Fee }},
		{"divisible", func(s offeredSlot) any { return s.Divisible }},
		{"extensible", func(s offeredSlot) any { return s.Extensible }},
	},
}

// plan prints which slots to reserve for a workflow.
func (v slotVerbs) plan(c *cli.Context) error {
	if c.NArg() != 1 {
		return corral.Errorf(corral.Invalid, "slots are planned for one workflow: name one file")
	}
	in, err := slotRequestOf(c)
	if err != nil {
		return err
	}
	problem := slotted.Problem{}
	if problem.Work, err = v.estimatedWork(c, c.Args().First()); err != nil {
		return err
	}
	sources, err := v.sources(c)
	if err != nil {
		return err
	}
	if problem.Sites, err = slotted.Ask(sources...); err != nil {
		return err
	}
	if d := c.Duration("transfer"); d > 0 {
		problem.Transfer = func(int, int) time.Duration { return d.Round(time.Millisecond) }
	}
	b, err := forecast.BookSlots(problem, in)
	if err != nil {
		return err
	}
	return v.showBooking(b)
}

// slotRequestOf reads the request from the flags.
func slotRequestOf(c *cli.Context) (in forecast.SlotRequest, err error) {
	goal, err := goalOf(c)
	if err != nil {
		return in, err
	}
	goal = goal.From(time.Now())
	in.Search = moga.Options{Context: c.Context, Seed: 1}
	if c.IsSet("seed") {
		in.Search.Seed = c.Uint64("seed")
	}
	in.TradeOff = goal.Tradeoff
	if in.Deadline, in.Budget = goal.Deadline, goal.Budget; in.Budget != nil && in.Budget.Money <= 0 {
		return in, corral.ErrorAt(corral.Invalid, "--budget", "%s is not a positive amount", in.Budget)
	}
	if d := c.Duration("transfer"); d < 0 {
		return in, corral.ErrorAt(corral.Invalid, "--transfer", "%s is negative", d)
	}
	return in, nil
}

// showBooking prints a line for each reservation, their total, and the alternatives.
func (v slotVerbs) showBooking(b *forecast.Booking) error {
	if v.format != formTable {
		return v.encode(b)
	}
	if err := reservationTable.list(v.printer, b.Pieces); err != nil || v.quiet {
		return err
	}
	fmt.Fprintf(v.out, "\nmakespan %s, cost %s, of at least %s, with %d of %d slots\n", brief(b.Makespan),
		priced(b.Cost), priced(b.LeastCost), b.Used(), b.Offered)
	if len(b.Front) > 1 {
		fmt.Fprintf(v.out, "\nwhat could be had instead, by --tradeoff:\n")
		return alternativeTable.list(v.printer, b.Front)
	}
	return nil
}

var reservationTable = listing[forecast.Reservation]{
	id:   func(b forecast.Reservation) string { return fmt.Sprint(b.Slot) },
	none: "no slot needs to be reserved",
	columns: []column[forecast.Reservation]{
		{"site", func(b forecast.Reservation) any { return b.Site }},
		{"slot", func(b forecast.Reservation) any { return b.Slot }},
		{"processors", func(b forecast.Reservation) any { return b.Processors }},
		{"start", func(b forecast.Reservation) any { return brief(b.Start) }},
		{"length", func(b forecast.Reservation) any { return brief(b.Length) }},
		{"cost", func(b forecast.Reservation) any { return priced(b.Cost) }},
	},
}

var alternativeTable = listing[forecast.Alternative]{
	id: func(o forecast.Alternative) string { return brief(o.Makespan) },
	columns: []column[forecast.Alternative]{
		{"makespan", func(o forecast.Alternative) any { return brief(o.Makespan) }},
		{"cost", func(o forecast.Alternative) any { return priced(o.Cost) }},
	},
}
