package slot_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
)

// TestSubslotCost is table 1 of the thesis: the pieces that may be taken from the four kinds of slots, and the cost of
// these pieces. The slot has 4 processors from 10 h to 16 h, at a price of 2 per processor-hour and a fee of 5.
func TestSubslotCost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		divisible, extensible bool
		start, length         time.Duration
		processors            int
		want                  float64 // 0: refused
		word                  string
	}{
		{"neither: all of it", false, false, 10 * h, 6 * h, 4, 53, ""},
		{"neither: fewer processors", false, false, 10 * h, 6 * h, 3, 0, "as a whole"},
		{"neither: later", false, false, 11 * h, 5 * h, 4, 0, "from its start"},
		{"neither: shorter", false, false, 10 * h, 5 * h, 4, 0, "to its end"},
		{"neither: longer", false, false, 10 * h, 7 * h, 4, 0, "not extensible"},
		{"extensible: all of it", false, true, 10 * h, 6 * h, 4, 53, ""},
		{"extensible: longer", false, true, 10 * h, 8 * h, 4, 69, ""},
		{"extensible: shorter", false, true, 10 * h, 5 * h, 4, 0, "to its end"},
		{"extensible: fewer processors", false, true, 10 * h, 8 * h, 1, 0, "as a whole"},
		{"extensible: later", false, true, 11 * h, 8 * h, 4, 0, "from its start"},
		{"divisible: a part", true, false, 12 * h, 3 * h, 2, 17, ""},
		{"divisible: all of it", true, false, 10 * h, 6 * h, 4, 53, ""},
		{"divisible: longer", true, false, 12 * h, 5 * h, 2, 0, "not extensible"},
		{"divisible: earlier", true, false, 9 * h, 2 * h, 2, 0, "after"},
		{"divisible: more processors", true, false, 12 * h, h, 5, 0, "only 4 of 5"},
		{"both: beyond the end", true, true, 15 * h, 3 * h, 1, 11, ""},
		{"both: earlier", true, true, 9 * h, 3 * h, 1, 0, "after"},
		{"both: nothing", true, true, 12 * h, 0, 1, 0, "must be positive"},
		{"both: on nothing", true, true, 12 * h, h, 0, 0, "must be positive"},
	} {
		s := slot.Slot{Start: 10 * h, Length: 6 * h, Processors: 4, Price: 2_000_000, Fee: 5_000_000,
			Divisible: c.divisible, Extensible: c.extensible}
		got, err := s.Cost(slot.Piece{Start: c.start, Length: c.length, Processors: c.processors})
		switch {
		case c.want > 0 && (err != nil || got.Units() != c.want):
			t.Errorf("%s: %s, %v; want %g", c.name, got, err, c.want)
		case c.want == 0 && (corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), c.word)):
			t.Errorf("%s: %s, %v; want an error with %q", c.name, got, err, c.word)
		}
	}
}

// Products beyond 64 bits are exact, and products beyond the range of money saturate.
func TestCharge(t *testing.T) {
	t.Parallel()
	const hour = 3_600_000
	for _, c := range []struct {
		price cost.Money
		work  int64
		want  cost.Money
	}{
		{1_000_000, hour, 1_000_000},
		{1, hour / 2, 1}, {1, hour/2 - 1, 0}, // half up
		{0, math.MaxInt64, 0},
		{hour, math.MaxInt64, math.MaxInt64},
		{hour - 1, math.MaxInt64, 9223369474806987792},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := slot.Charge(c.price, c.work); got != c.want {
			t.Errorf("Charge(%d, %d) = %d, want %d", c.price, c.work, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := slot.Slot{Start: h, Length: h, Processors: 1, Price: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for word, change := range map[string]func(*slot.Slot){
		"no length":                  func(s *slot.Slot) { s.Length = 0 },
		"30 years":                   func(s *slot.Slot) { s.Length = 300_000 * h },
		"within":                     func(s *slot.Slot) { s.Start = -h },
		"milliseconds":               func(s *slot.Slot) { s.Start++ },
		"0 processors":               func(s *slot.Slot) { s.Processors = 0 },
		"price or fee":               func(s *slot.Slot) { s.Price = -1 },
		"is negative":                func(s *slot.Slot) { s.Fee = -1 },
		"but must have 1 to 1000000": func(s *slot.Slot) { s.Processors = math.MaxInt32 },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), word) {
			t.Errorf("Check() = %v, want an error with %q", err, word)
		}
	}
}
