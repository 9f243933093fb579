package ensemble_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/plantest"
)

const dollar = 1_000_000

// Eq. 6.1 at its edges, and the authors' variant, which first rounds the budget down and the deadline up.
func TestNVM(t *testing.T) {
	t.Parallel()
	hourly := ensemble.Hourly
	for _, tt := range []struct {
		name            string
		terms           ensemble.Terms
		budget          cost.Money
		deadline        time.Duration
		want, published int
	}{
		{"the worked example", hourly, 18 * dollar, 6 * time.Hour, 3, 3},
		{"rounded up", hourly, 19 * dollar, 6 * time.Hour, 4, 4},
		{"a micro-unit more", hourly, 18*dollar + 1, 6 * time.Hour, 4, 3},
		{"a deadline between two hours", hourly, 18 * dollar, 5*time.Hour + time.Second, 4, 3},
		{"less than a period's price", hourly, dollar - 1, 6 * time.Hour, 0, 0},
		{"just a period's price", hourly, dollar, 6 * time.Hour, 1, 1},
		{"a deadline below an hour: no more than can be paid", hourly, 3*dollar + dollar/2, 30 * time.Minute, 3, 3},
		{"no time", hourly, dollar, 0, 0, 0},
		{"no budget", hourly, 0, time.Hour, 0, 0},
		{"a debt", hourly, -dollar, time.Hour, 0, 0},
		{"beyond any number of machines", ensemble.Terms{Price: 1, Period: time.Hour}, math.MaxInt64, time.Millisecond,
			math.MaxInt32, math.MaxInt32},
		{"by the second", ensemble.Terms{Price: 100, Period: time.Second}, dollar, 100 * time.Second, 100, 100},
	} {
		if got := tt.terms.Machines(tt.budget, tt.deadline); got != tt.want {
			t.Errorf("%s: %d machines, want %d", tt.name, got, tt.want)
		}
		if got := tt.terms.MachinesPublished(tt.budget, tt.deadline); got != tt.published {
			t.Errorf("%s, as published: %d machines, want %d", tt.name, got, tt.published)
		}
	}
}

// A machine is billed for each period begun, and for at least one.
func TestBilling(t *testing.T) {
	t.Parallel()
	for held, want := range map[time.Duration]int64{
		0: 1, time.Millisecond: 1, time.Hour: 1, time.Hour + time.Millisecond: 2, 6 * time.Hour: 6,
	} {
		if got := ensemble.Hourly.Periods(held); got != want {
			t.Errorf("%s: %d periods, want %d", held, got, want)
		}
	}
	if got := ensemble.Hourly.Of(90 * time.Minute); got != 3*dollar/2 {
		t.Errorf("an hour and a half in proportion: %s", got)
	}
}

// With 200 workflows, a float64 cannot distinguish the two scores. A score compares exactly like the
// exponential sum.
func TestScores(t *testing.T) {
	t.Parallel()
	first := ensemble.Score("1" + strings.Repeat("0", 199))
	both := ensemble.Score("1" + strings.Repeat("0", 198) + "1")
	rest := ensemble.Score("0" + strings.Repeat("1", 199))
	if first.Compare(both) >= 0 || first.Compare(rest) <= 0 || first.Compare(first) != 0 {
		t.Error("scores of 200 workflows are not told apart")
	}
	if both.Count() != 2 || both.Linear().Cmp(big.NewRat(201, 200)) != 0 {
		t.Errorf("count %d, linear %s", both.Count(), both.Linear())
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(rt, "workflows")
		a, b := rapid.SliceOfN(rapid.Bool(), n, n).Draw(rt, "a"), rapid.SliceOfN(rapid.Bool(), n, n).Draw(rt, "b")
		if got, want := ensemble.ScoreOf(a).Compare(ensemble.ScoreOf(b)), exponential(a).Cmp(exponential(b)); got != want {
			rt.Fatalf("compared: %d, want %d", got, want)
		}
	})
}

func exponential(done []bool) *big.Int {
	sum := new(big.Int)
	for i, d := range done {
		if d {
			sum.SetBit(sum, len(done)-i, 1)
		}
	}
	return sum
}

// The bounds of the worked example: 275, 395 and 535 minutes of work; critical paths of 180, 260 and 340 minutes.
func TestBounds(t *testing.T) {
	t.Parallel()
	got := plantest.Three().Bounds(ensemble.Hourly)
	want := ensemble.Bounds{LeastBudget: 4_583_334, MostBudget: 4_583_334 + 6_583_334 + 8_916_667,
		LeastDeadline: 180 * time.Minute, MostDeadline: 780 * time.Minute}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]plan.Share{"0": 0, "0.7": 700_000, "1": plan.Whole, "2.000001": 2_000_001} {
		got, err := plan.ParseShare(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %d, %v, written %s", text, got, err, got)
		}
	}
	for _, text := range []string{"", ".", ".5", "-1", "0.0000001", "1e3", "NaN", "0x1", "1..2", "99999999999999999999"} {
		if got, err := plan.ParseShare(text); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if s := plan.Share(900_000); s.Compare(9, 10) != 0 || s.Compare(91, 100) != -1 || s.Of(3) != 3 {
		t.Error("9 of 10 is not 0.9")
	}
}

func TestWhatIsNoEnsemble(t *testing.T) {
	t.Parallel()
	three := plantest.Three()
	if err := three.Check(); err != nil {
		t.Error(err)
	}
	three[1].Tasks = nil
	for _, e := range []ensemble.Ensemble{nil, three} {
		if err := e.Check(); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%d workflows: %v", len(e), err)
		}
	}
}

// A reason has the time that is left in milliseconds, however exactly a clock measures it.
func TestLate(t *testing.T) {
	t.Parallel()
	claim := ensemble.Claim{Path: 2 * time.Minute}
	want := "its critical path takes 2m0s, but the deadline is in 30.688s"
	if got := claim.Late(30_688_969_965); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := claim.Late(2 * time.Minute); got != "" {
		t.Errorf("in time, and refused: %s", got)
	}
}
