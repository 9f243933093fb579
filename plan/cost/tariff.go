package cost

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Tariff says what holding pilots costs at a site: a price, and which time is billed for what is held.
type Tariff struct {
	Rate    Rate
	Billing Billing
}

// CoreHours is the tariff where nothing has a price: it counts the cpu-hours that are held.
var CoreHours = Tariff{Rate: Rate{Price: micro, Unit: CPUHours, Per: CPUHour}}

// ParseTariff reads a price, as ParseRate does, and a billing period, as ParseBilling does. An empty price is that of
// CoreHours, an empty period bills the time itself. A price that is not per cpu-hour or host-hour, and everything that
// the two parsers refuse, is an Invalid error whose place is price or billing.
func ParseTariff(price, billing string) (t Tariff, err error) {
	t.Rate = CoreHours.Rate
	if price != "" {
		if t.Rate, err = ParseRate(price); err != nil {
			return Tariff{}, corral.ErrorAt(corral.Invalid, "price", "%w", err)
		}
	}
	if per := t.Rate.Per; per != CPUHour && per != HostHour {
		return Tariff{}, corral.ErrorAt(corral.Invalid, "price",
			"pilots hold cpus and hosts: a price is per %s or per %s, not per %s", CPUHour, HostHour, per)
	}
	if billing == "" {
		return t, nil
	}
	if t.Billing, err = ParseBilling(billing); err != nil {
		return Tariff{}, corral.ErrorAt(corral.Invalid, "billing", "%w", err)
	}
	return t, nil
}

// TermsOf reads a site's terms: its tariff, and its allocation, nil if it has none. An allocation in another unit than
// the price is an Invalid error; the places of errors are the fields of corral.SiteTerms.
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
			"%s is in %s, and the price of %s in %s: both need one unit", a, a.Unit, t.Rate, t.Rate.Unit)
	}
	return t, &a.Money, nil
}

// Charge adds what a holding costs to what others did.
func (t Tariff) Charge(h Holding, to Spending) Spending {
	used, billed := t.Rate.Charge(h, t.Billing)
	cpus := float64(h.CPUs)
	return to.Plus(Spending{
		Used: used, Billed: billed,
		UsedHours: cpus * max(0, h.Held).Hours(), BilledHours: cpus * t.Billing.Billed(h.Held).Hours(),
	})
}

// OfCPUMinutes is the least that the tariff takes for so many cpu-minutes on hosts of at most so many cpus: at a price
// per host-hour, the part of one cpu.
func (t Tariff) OfCPUMinutes(n int64, cpus int) Money {
	over := []int64{60}
	if t.Rate.Per == HostHour {
		over = append(over, int64(max(1, cpus)))
	}
	return scale(t.Rate.Price, []int64{max(0, n)}, over)
}

// String writes b as ParseBilling reads it; the zero Billing is empty.
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

// brief writes a duration without the units that are 0: 1h, and not 1h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
