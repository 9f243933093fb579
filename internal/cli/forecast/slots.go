package forecast

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
)

// SlotUnit is the unit of costs: service units, because prices of slots specify no other unit.
const SlotUnit = cost.ServiceUnits

// A SlotRequest describes a user's preferences.
type SlotRequest struct {
	TradeOff ensemble.Share // 0: the shortest makespan; 1: the least cost
	Deadline corral.Seconds // 0: no deadline
	Budget   *cost.Amount   // nil: no limit
	Search   moga.Options
}

// A Booking recommends which parts of slots to reserve.
type Booking struct {
	Makespan  corral.Seconds `json:"makespan_s"`
	Cost      cost.Amount    `json:"cost"`
	LeastCost cost.Amount    `json:"least_cost"` // cost of the tasks' processor time at the lowest price
	TradeOff  ensemble.Share `json:"tradeoff"`
	Offered   int            `json:"offered"` // number of slots offered
	Pieces    []Reservation  `json:"pieces"`  // parts of slots to reserve
	Schedule  []Placement    `json:"schedule"`
	Front     []Alternative  `json:"front"` // alternatives, the fastest first
}

// A Reservation is the part of a slot to reserve.
type Reservation struct {
	Site       string         `json:"site"`
	Slot       int            `json:"slot"` // its number among the site's offers, from 1
	Processors int            `json:"processors"`
	Start      corral.Seconds `json:"start_s"`
	Length     corral.Seconds `json:"length_s"`
	Cost       cost.Amount    `json:"cost"`
}

// A Placement is the place and time of a task.
type Placement struct {
	Task  string         `json:"task"`
	Site  string         `json:"site"`
	Start corral.Seconds `json:"start_s"`
	End   corral.Seconds `json:"end_s"`
}

// An Alternative is a plan of the Pareto front.
type Alternative struct {
	Makespan corral.Seconds `json:"makespan_s"`
	Cost     cost.Amount    `json:"cost"`
}

// BookSlots plans a problem. It returns the errors of slotted.New and of moga's Search and Choose, and an error of kind
// Invalid for a budget in another unit.
func BookSlots(p slotted.Problem, in SlotRequest) (*Booking, error) {
	limits := moga.Limits{Deadline: time.Duration(in.Deadline)}
	if in.Budget != nil {
		if limits.Budget = in.Budget.Money; in.Budget.Unit != SlotUnit {
			return nil, corral.ErrorAt(corral.Invalid, "--budget", "slots are priced in %s, not in %s", SlotUnit,
				in.Budget.Unit)
		}
	}
	s, err := slotted.New(p)
	if err != nil {
		return nil, err
	}
	front, err := moga.Search(moga.Slots(s), in.Search)
	if err != nil {
		return nil, err
	}
	chosen, err := front.Choose(in.TradeOff, limits)
	if err != nil {
		return nil, err
	}
	made, _ := s.Plan(chosen.Chosen.Has) // cannot fail, because the plan has been evaluated
	b := &Booking{Makespan: corral.Seconds(made.Makespan), Cost: inSlotUnits(made.Cost),
		LeastCost: inSlotUnits(s.LeastCost()), TradeOff: in.TradeOff, Offered: s.Slots()}
	for _, m := range front {
		b.Front = append(b.Front, Alternative{corral.Seconds(m.Makespan), inSlotUnits(m.Cost)})
	}
	b.describe(p, made)
	return b, nil
}

// describe lists a plan's reservations and the placement of its tasks.
func (b *Booking) describe(p slotted.Problem, made slotted.Plan) {
	for _, piece := range made.Pieces {
		site := p.Sites[piece.Site]
		c, _ := site.Slots[piece.Slot].Cost(piece.Piece) // cannot fail, because all pieces of a plan are allowed
		b.Pieces = append(b.Pieces, Reservation{site.Site, piece.Slot + 1, piece.Processors,
			corral.Seconds(piece.Start - site.At), corral.Seconds(piece.Length), inSlotUnits(c)})
	}
	for i, r := range made.Schedule {
		site := p.Sites[r.Site]
		b.Schedule = append(b.Schedule, Placement{p.Work.Task(i).ID, site.Site, corral.Seconds(r.Start - site.At),
			corral.Seconds(r.End - site.At)})
	}
}

// Used returns the number of slots of which a part is reserved.
func (b *Booking) Used() int {
	used := map[Reservation]bool{}
	for _, p := range b.Pieces {
		used[Reservation{Site: p.Site, Slot: p.Slot}] = true
	}
	return len(used)
}

func inSlotUnits(m cost.Money) cost.Amount { return cost.Amount{Money: m, Unit: SlotUnit} }
