package cost_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

var hourly = cost.Billing{Period: time.Hour}

func rate(t *testing.T, s string) cost.Rate {
	t.Helper()
	r, err := cost.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		money cost.Money
		unit  cost.Unit
		out   string
	}{
		"40ch":                    {40_000_000, cost.CPUHours, "40ch"},
		"12USD":                   {12_000_000, "USD", "12USD"},
		"500SU":                   {500_000_000, cost.ServiceUnits, "500SU"},
		"0.50EUR":                 {500_000, "EUR", "0.5EUR"},
		"0.000001USD":             {1, "USD", "0.000001USD"},
		"0ch":                     {0, cost.CPUHours, "0ch"},
		"9223372036854.775807USD": {math.MaxInt64, "USD", "9223372036854.775807USD"},
	} {
		a, err := cost.ParseAmount(in)
		if err != nil || a.Money != want.money || a.Unit != want.unit || a.String() != want.out {
			t.Errorf("ParseAmount(%q) = %v, %v; want %s", in, a, err, want.out)
		}
	}
	for in, word := range map[string]string{
		"40":     "ch (cpu-hours), SU (service units), or a currency such as USD",
		"40cph":  "cph",
		"12usd":  "usd",
		"":       "decimal",
		"ch":     "decimal",
		"12 USD": "decimal",
		"-1USD":  "negative",
		"+1USD":  "decimal",
		"1e3USD": "decimal",
		"0x1USD": "decimal",
		".5USD":  "decimal",
		"5.USD":  "decimal",
		"1,5EUR": "decimal",
		"NaNUSD": "decimal",

		"1.0000001USD":                   "decimal places",
		"9223372036854.775808USD":        "too large",
		strings.Repeat("9", 1000) + "ch": "too large",
	} {
		a, err := cost.ParseAmount(in)
		checkRefused(t, "ParseAmount", in, a, err, word)
	}
}

// checkRefused checks that a text was rejected with an error that contains a word.
func checkRefused(t *testing.T, parse, in string, got any, err error, word string) {
	t.Helper()
	if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), word) {
		t.Errorf("%s(%.60q) = %v, %v; want an error with %q", parse, in, got, err, word)
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m      cost.Money
		places int
		want   string
	}{
		{126_635_000, 2, "126.64"}, {126_634_999, 2, "126.63"}, {5_000, 2, "0.01"}, {4_999, 2, "0.00"},
		{-5_000, 2, "-0.01"}, {1_500_000, 0, "2"}, {1_234_567, 6, "1.234567"}, {1_234_567, 9, "1.234567"},
		{math.MaxInt64, 2, "9223372036854.78"}, {math.MinInt64, 6, "-9223372036854.775808"}, {0, 2, "0.00"},
	} {
		if got := c.m.Round(c.places); got != c.want {
			t.Errorf("Round(%d, %d) = %s, want %s", int64(c.m), c.places, got, c.want)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"40ch", "12USD", "500SU", "0.000001EUR", "1.5", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := cost.ParseAmount(s)
		if err != nil {
			return
		}
		again, err := cost.ParseAmount(a.String())
		if err != nil || again != a || a.Money < 0 {
			t.Errorf("%q is %v, which reads as %v, %v", s, a, again, err)
		}
	})
}

func TestParseBillingAndRate(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]cost.Billing{
		"1h": {0, time.Hour}, "1m": {0, time.Minute}, "1s": {0, time.Second},
		"10m-minimum": {10 * time.Minute, time.Minute}, "10m-minimum+1s": {10 * time.Minute, time.Second},
	} {
		if got, err := cost.ParseBilling(in); err != nil || got != want {
			t.Errorf("ParseBilling(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "1", "0s", "-1h", "9000h", "1h+1m", "-minimum", "10m-minimum1s", "10m-minimum+", "10m-minimum+0s",
	} {
		b, err := cost.ParseBilling(in)
		checkRefused(t, "ParseBilling", in, b, err, "10m-minimum")
	}
	want := cost.Rate{Price: 680_000, Unit: "USD", Per: cost.HostHour}
	if r := rate(t, "0.68USD/host-hour"); r != want || r.String() != "0.68USD/host-hour" {
		t.Errorf("ParseRate = %v", r)
	}
	for in, word := range map[string]string{
		"": "decimal", "1USD": "cpu-hour", "1USD/week": "cpu-hour", "1USD/GB": "cpu-hour", "x/cpu-hour": "decimal", "1/cpu-hour": "unit",
	} {
		r, err := cost.ParseRate(in)
		checkRefused(t, "ParseRate", in, r, err, word)
	}
}

func FuzzParseBilling(f *testing.F) {
	for _, s := range []string{"1h", "10m-minimum", "10m-minimum+1s", "x-minimum"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := cost.ParseBilling(s)
		if err == nil && (b.Period <= 0 || b.Minimum < 0 || b.Billed(time.Second) < time.Second) {
			t.Errorf("%q is %v", s, b)
		}
	})
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"0.68USD/host-hour", "1SU/cpu-hour", "0.1USD/GB", "1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := cost.ParseRate(s)
		if err != nil {
			return
		}
		if again, err := cost.ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is %v, which reads as %v, %v", s, r, again, err)
		}
	})
}

// The billed time is at least the time held, and equal to it for whole periods above the minimum.
func TestActualAndBilled(t *testing.T) {
	t.Parallel()
	billings := []cost.Billing{
		{}, hourly, {Period: time.Minute}, {Period: time.Second}, {Minimum: 10 * time.Minute, Period: time.Minute},
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom(billings).Draw(t, "billing")
		r := cost.Rate{
			Price: cost.Money(rapid.Int64Range(0, 1e12).Draw(t, "price")), Unit: "USD",
			Per: rapid.SampledFrom([]cost.Per{cost.CPUHour, cost.HostHour}).Draw(t, "per"),
		}
		h := cost.Holding{
			Hosts: rapid.IntRange(0, 5000).Draw(t, "hosts"), CPUs: rapid.IntRange(0, 100_000).Draw(t, "cpus"),
			Held: time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "held")),
		}
		actual, billed := r.Charge(h, b)
		if actual > billed || actual < 0 {
			t.Errorf("%v of %+v by %v: actual %d, billed %d", r, h, b, actual, billed)
		}
		n := map[cost.Per]int{cost.CPUHour: h.CPUs, cost.HostHour: h.Hosts}[r.Per]
		if want := exact(r.Price, n, h.Held); actual != want {
			t.Errorf("%v of %+v = %d, want %d", r, h, actual, want)
		}
		if b.Period > 0 {
			h.Held = max(b.Minimum, h.Held).Truncate(b.Period)
		}
		if actual, billed := r.Charge(h, b); actual != billed {
			t.Errorf("whole periods %v: actual %d, billed %d", h.Held, actual, billed)
		}
	})
}

// exact returns price × n × hours, rounded half up, computed in rational numbers.
func exact(price cost.Money, n int, held time.Duration) cost.Money {
	product := new(big.Int).Mul(big.NewInt(int64(price)), big.NewInt(int64(n)))
	product.Mul(product, big.NewInt(int64(held)))
	half := new(big.Rat).SetFrac(product, big.NewInt(int64(time.Hour)))
	half.Add(half, big.NewRat(1, 2))
	whole := new(big.Int).Quo(half.Num(), half.Denom())
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return cost.Money(whole.Int64())
}

func TestBilledAtTheEdges(t *testing.T) {
	t.Parallel()
	ten := cost.Billing{Minimum: 10 * time.Minute, Period: time.Minute}
	for _, c := range []struct {
		b          cost.Billing
		held, want time.Duration
	}{
		{hourly, 0, 0}, {hourly, -time.Hour, 0}, {hourly, 1, time.Hour}, {hourly, time.Hour, time.Hour},
		{hourly, time.Hour + 1, 2 * time.Hour}, {ten, time.Second, 10 * time.Minute}, {ten, 0, 0},
		{ten, 10*time.Minute + 1, 11 * time.Minute}, {hourly, math.MaxInt64, math.MaxInt64}, {cost.Billing{}, 7, 7},
	} {
		if got := c.b.Billed(c.held); got != c.want {
			t.Errorf("%v bills %v for %v, want %v", c.b, got, c.held, c.want)
		}
	}
}

// 100,000 cpus for a year fit into Money; larger amounts saturate at the maximum, which exceeds every budget.
func TestMoneySaturates(t *testing.T) {
	t.Parallel()
	year := cost.Holding{CPUs: 100_000, Hosts: 1, Held: 8760 * time.Hour}
	if got, _ := rate(t, "1ch/cpu-hour").Charge(year, cost.Billing{}); got.String() != "876000000" {
		t.Errorf("a year of 100,000 cpus is %s cpu-hours", got)
	}
	actual, billed := rate(t, "9000000000000USD/cpu-hour").Charge(year, hourly)
	if actual != math.MaxInt64 || billed != math.MaxInt64 || actual.Plus(1) != math.MaxInt64 {
		t.Errorf("beyond the range: %d, %d", actual, billed)
	}
	if got := cost.Money(math.MinInt64).Plus(-1); got != math.MinInt64 {
		t.Errorf("below the range: %d", got)
	}
}

func TestPareto(t *testing.T) {
	t.Parallel()
	points := []cost.Point{
		{4 * time.Hour, 10}, {2 * time.Hour, 30}, {4 * time.Hour, 10},
		{4 * time.Hour, 20}, {3 * time.Hour, 30}, {8 * time.Hour, 5},
	}
	if got := cost.Pareto(points, nil); !slices.Equal(got, []int{1, 0, 5}) {
		t.Errorf("Pareto = %v: of equal points the first stays, one that is as fast and more expensive is dropped", got)
	}
	if got := cost.Pareto(points, func(i, j int) int { return j - i }); !slices.Equal(got, []int{1, 2, 5}) {
		t.Errorf("Pareto = %v: of equal points the first by tie stays", got)
	}
	if got := cost.Pareto(nil, nil); got != nil {
		t.Errorf("Pareto of nothing = %v", got)
	}
}

// A point is in the set if and only if no other point dominates it, and no earlier point equals it.
func TestParetoAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cost.Point {
			small := rapid.IntRange(0, 6)
			return cost.Point{
				Makespan: time.Duration(small.Draw(t, "makespan")), Cost: cost.Money(small.Draw(t, "cost")),
			}
		}), 0, 12).Draw(t, "points")
		front := cost.Pareto(points, nil)
		for i, p := range points {
			dominated := slices.Contains(points[:i], p) || slices.ContainsFunc(points, func(q cost.Point) bool {
				return q.Makespan <= p.Makespan && q.Cost <= p.Cost && q != p
			})
			if dominated == slices.Contains(front, i) {
				t.Errorf("%v: point %d is dominated: %v, and the set is %v", points, i, dominated, front)
			}
		}
	})
}
