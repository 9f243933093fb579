package cost

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/timetext"
)

// A Per is the quantity to which a price refers.
type Per string

const (
	CPUHour  Per = "cpu-hour"
	HostHour Per = "host-hour"
)

var pers = []Per{CPUHour, HostHour}

// A Rate is the price of one Per. The zero Rate is free.
type Rate struct {
	Price Money
	Unit  Unit
	Per   Per
}

// short maps abbreviations to the quantities of prices.
var short = map[string]Per{"cpuh": CPUHour, "hosth": HostHour}

// ParseRate parses the argument of --price: AMOUNT/PER, such as 0.68USD/host-hour, 1SU/cpu-hour or
// 1SU/max(cpu=1,mem=0.25,gpu=8)-hour, or sum in place of max. cpuh and hosth abbreviate cpu-hour and host-hour. Errors
// are of kind Invalid.
func ParseRate(s string) (Rate, error) {
	amount, quantity, _ := strings.Cut(s, "/")
	a, err := ParseAmount(amount)
	if err != nil {
		return Rate{}, err
	}
	per, err := perOf(quantity)
	if err != nil {
		return Rate{}, corral.Errorf(corral.Invalid,
			"%.60q is not a price such as 0.68USD/host-hour or 1SU/cpu-hour: %w", s, err)
	}
	return Rate{a.Money, a.Unit, per}, nil
}

func errPer(per string) error {
	if per == "" {
		return fmt.Errorf("the quantity is missing: add /%s or /%s", CPUHour, HostHour)
	}
	return fmt.Errorf("%.40q must be one of %s", per, strings.Trim(fmt.Sprint(pers), "[]"))
}

// String formats r in the syntax that ParseRate parses.
func (r Rate) String() string { return Amount{r.Price, r.Unit}.String() + "/" + string(r.Per) }

// A Holding is an amount of resources held for a time, such as a pilot from its start to its release.
type Holding struct {
	Hosts     int
	CPUs      int // total of all hosts, like the next two
	MemoryMiB int
	GPUs      int
	Held      time.Duration
}

// Charge returns the cost of a holding: for the time held, and for the time billed.
func (r Rate) Charge(h Holding, b Billing) (actual, billed Money) {
	n, over := r.units(h)
	hours := func(d time.Duration) Money {
		return scale(r.Price, []int64{n, int64(max(0, d))}, []int64{over * int64(time.Hour)})
	}
	return hours(h.Held), hours(b.Billed(h.Held))
}

// Billing determines the time that is billed for a holding: whole periods, and at least Minimum. The zero Billing bills
// the exact time.
type Billing struct {
	Minimum time.Duration
	Period  time.Duration
}

const maxPeriod = 366 * 24 * time.Hour

// ParseBilling parses the argument of --billing: a period (1h, 1m, 1s), MINIMUM-minimum with periods of a minute
// (10m-minimum), or MINIMUM-minimum+PERIOD. Errors are of kind Invalid.
func ParseBilling(s string) (Billing, error) {
	b := Billing{Period: time.Minute}
	minimum, period, both := strings.Cut(s, "-minimum")
	var err error
	switch {
	case !both:
		b.Period, err = parsePeriod(s)
	case period != "":
		plus, found := strings.CutPrefix(period, "+")
		if b.Period, err = parsePeriod(plus); !found {
			err = fmt.Errorf("unexpected %.40q after -minimum", period)
		}
	}
	if both && err == nil {
		b.Minimum, err = parsePeriod(minimum)
	}
	if err != nil {
		return Billing{}, corral.Errorf(corral.Invalid,
			"%.60q is not a billing period such as 1h, 1m, 1s, 10m-minimum or 10m-minimum+1s: %w", s, err)
	}
	return b, nil
}

func parsePeriod(s string) (time.Duration, error) {
	d, err := timetext.Duration(s)
	if err == nil && (d <= 0 || d > maxPeriod) {
		err = fmt.Errorf("%.40q must be a duration of up to a year", s)
	}
	return d, err
}

// Billed returns the time that is billed for a holding. No time is billed for resources that were never held. The
// result saturates at the maximum Duration.
func (b Billing) Billed(held time.Duration) time.Duration {
	if held <= 0 {
		return 0
	}
	held = max(held, b.Minimum)
	if b.Period <= 0 || held%b.Period == 0 {
		return held
	}
	rest := b.Period - held%b.Period
	if held > math.MaxInt64-rest {
		return math.MaxInt64
	}
	return held + rest
}
