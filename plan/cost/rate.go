package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Per says of what one price is.
type Per string

const (
	CPUHour         Per = "cpu-hour"
	HostHour        Per = "host-hour"
	GB              Per = "GB" // 2³⁰ bytes
	GBMonth         Per = "GB-month"
	Requests        Per = "1000-requests"
	TenThousand     Per = "10000-requests"
	MillionRequests Per = "1000000-requests"
)

var pers = []Per{CPUHour, HostHour, GB, GBMonth, Requests, TenThousand, MillionRequests}

// Month is how long a GB-month lasts: a twelfth of a year of 365 days.
const Month = 730 * time.Hour

// A Rate is the price of one of something. The zero Rate is free.
type Rate struct {
	Price Money
	Unit  Unit
	Per   Per
}

// short are other words for what a price is of.
var short = map[string]Per{"cpuh": CPUHour, "hosth": HostHour}

// ParseRate reads what --price takes: AMOUNT/PER, such as 0.68USD/host-hour or 1SU/cpu-hour; cpuh and hosth are short
// for the two. Errors are of kind Invalid.
func ParseRate(s string) (Rate, error) {
	amount, per, found := strings.Cut(s, "/")
	if long := short[per]; long != "" {
		per = string(long)
	}
	a, err := ParseAmount(amount)
	if err != nil {
		return Rate{}, err
	}
	if !found || !slices.Contains(pers, Per(per)) {
		return Rate{}, corral.Errorf(corral.Invalid,
			"%.60q is not a price such as 0.68USD/host-hour or 1SU/cpu-hour: %w", s, errPer(per))
	}
	return Rate{a.Money, a.Unit, Per(per)}, nil
}

func errPer(per string) error {
	if per == "" {
		return fmt.Errorf("it does not say per what, such as /%s or /%s", CPUHour, HostHour)
	}
	return fmt.Errorf("%.40q is none of %s", per, strings.Trim(fmt.Sprint(pers), "[]"))
}

// String writes r as ParseRate reads it.
func (r Rate) String() string { return Amount{r.Price, r.Unit}.String() + "/" + string(r.Per) }

// A Holding is what was held, and for how long: a pilot, from its start to its release.
type Holding struct {
	Hosts int
	CPUs  int // of all hosts
	Held  time.Duration
}

// Charge returns the cost of a holding at a rate per cpu-hour or host-hour: of the time it was held, and of the time
// that is billed. Rates per other things give 0.
func (r Rate) Charge(h Holding, b Billing) (actual, billed Money) {
	n := map[Per]int{CPUHour: h.CPUs, HostHour: h.Hosts}[r.Per]
	hours := func(d time.Duration) Money {
		return scale(r.Price, []int64{int64(max(0, n)), int64(max(0, d))}, []int64{int64(time.Hour)})
	}
	return hours(h.Held), hours(b.Billed(h.Held))
}

// bytes is the price of so many bytes, at a rate per GB.
func (r Rate) bytes(n int64) Money { return scale(r.Price, []int64{max(0, n)}, []int64{1 << 30}) }

// storage is the price of keeping so many bytes for so long, at a rate per GB-month.
func (r Rate) storage(n int64, kept time.Duration) Money {
	return scale(r.Price, []int64{max(0, n), int64(max(0, kept))}, []int64{1 << 30, int64(Month)})
}

// requests is the price of so many requests, at a rate per so many.
func (r Rate) requests(n int64) Money {
	per := map[Per]int64{Requests: 1e3, TenThousand: 1e4, MillionRequests: 1e6}[r.Per]
	return scale(r.Price, []int64{max(0, n)}, []int64{max(1, per)})
}

// Billing says which time is billed for what was held: whole periods, but a minimum of time at least. The zero Billing
// bills the time itself.
type Billing struct {
	Minimum time.Duration
	Period  time.Duration
}

const maxPeriod = 366 * 24 * time.Hour

// ParseBilling reads what --billing takes: a period (1h, 1m, 1s), MINIMUM-minimum with periods of a minute
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
			err = fmt.Errorf("%.40q follows -minimum", period)
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
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxPeriod {
		return 0, fmt.Errorf("%.40q is not a duration of up to a year", s)
	}
	return d, nil
}

// Billed returns the time that is billed for what was held. What was never held is not billed. Times beyond the range
// of a Duration stay at its maximum.
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
