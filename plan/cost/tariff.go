package cost

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Tariff determines the cost of holding pilots at a site: a price and the billed time.
type Tariff struct {
	Rate    Rate
	Billing Billing
}

// CoreHours is the tariff for sites without prices: it counts the cpu-hours held.
var CoreHours = Tariff{Rate: Rate{Price: micro, Unit: CPUHours, Per: CPUHour}}

// ParseTariff parses a price with ParseRate and a billing period with ParseBilling. An empty price means the price of
// CoreHours; with an empty period the exact time is billed. If a parser fails, the error is Invalid and its place is
// price or billing.
func ParseTariff(price, billing string) (t Tariff, err error) {
	t.Rate = CoreHours.Rate
	if price != "" {
		if t.Rate, err = ParseRate(price); err != nil {
			return Tariff{}, corral.ErrorAt(corral.Invalid, "price", "%w", err)
		}
	}
	if billing == "" {
		return t, nil
	}
	if t.Billing, err = ParseBilling(billing); err != nil {
		return Tariff{}, corral.ErrorAt(corral.Invalid, "billing", "%w", err)
	}
	return t, nil
}

// TermsOf parses a site's terms: its tariff, and its allocation, which is nil if the site has none. The allocation must
// have the same unit as the price; otherwise the error is Invalid. The places of errors are fields of corral.SiteTerms.
func TermsOf(s corral.SiteTerms) (Tariff, *Money, error) {
	t, err := ParseTariff(s.Price, s.Billing)
	if err != nil || s.Allocation == "" {
		return t, nil, err
	}
	a, err := ParseAmount(s.Allocation)
	if err != nil {
		return t, nil, corral.ErrorAt(corral.Invalid, "allocation", "%w", err)
	}
	if a.Unit != t.Rate.Unit {
		return t, nil, corral.ErrorAt(corral.Invalid, "allocation",
			"%s is in %s, but the price %s is in %s: both must have the same unit", a, a.Unit, t.Rate, t.Rate.Unit)
	}
	return t, &a.Money, nil
}

// Charge adds the cost of a holding to earlier spending.
func (t Tariff) Charge(h Holding, to Spending) Spending {
	used, billed := t.Rate.Charge(h, t.Billing)
	cpus := float64(h.CPUs)
	return to.Plus(Spending{
		Used: used, Billed: billed,
		UsedHours: cpus * max(0, h.Held).Hours(), BilledHours: cpus * t.Billing.Billed(h.Held).Hours(),
	})
}

// OfCPUMinutes returns the minimum cost of n cpu-minutes on hosts with at most the given number of cpus. If the price
// is per host-hour, each cpu costs its share of the price of the host. A price that weighs resources, but not cpus,
// counts cpu-hours.
func (t Tariff) OfCPUMinutes(n int64, cpus int) Money {
	of, over := []int64{max(0, n)}, []int64{60}
	if t.Rate.Per == HostHour {
		over = append(over, int64(max(1, cpus)))
	}
	if t.Rate.Per.weighed() {
		if w, _ := t.Rate.Per.weights(); w.cpu > 0 {
			of, over = append(of, int64(w.cpu)), append(over, micro)
		}
	}
	return scale(t.Rate.Price, of, over)
}

// String formats b in the syntax of ParseBilling; the zero Billing is empty.
func (b Billing) String() string {
	switch {
	case b.Period <= 0 && b.Minimum <= 0:
		return ""
	case b.Minimum <= 0:
		return brief(b.Period)
	case b.Period == time.Minute:
		return brief(b.Minimum) + "-minimum"
	}
	return brief(b.Minimum) + "-minimum+" + brief(b.Period)
}

// brief formats a duration without units that are 0: 1h instead of 1h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
