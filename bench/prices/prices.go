// Package prices holds the price lists with which studies of clouds were computed, and the formulas for transfers and
// storage (Juve, Resource Management for Scientific Workflows, PhD thesis, University of Southern California, 2012,
// chapter 4). As there, a GB is 1,024 MB. Its comparison of two choices by the ratio of their changes is Change.
package prices

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan/cost"
)

// Prices is one price list: the prices of a provider at one time. Studies that used different lists are not comparable,
// so each cost names its list.
type Prices struct {
	Name  string
	Rates map[string]cost.Rate // :: item → rate; all have the same unit
}

// The items that the formulas look up. A list may contain other items, such as machine types.
const (
	TransferIn  = "transfer-in"
	TransferOut = "transfer-out"
	S3Storage   = "s3-storage"
	S3Put       = "s3-put"
	S3Get       = "s3-get"
	EBSStorage  = "ebs-storage"
	EBSIO       = "ebs-io"
)

// The quantities of prices that pilots do not hold.
const (
	GB              cost.Per = "GB" // 2³⁰ bytes
	GBMonth         cost.Per = "GB-month"
	Requests        cost.Per = "1000-requests"
	TenThousand     cost.Per = "10000-requests"
	MillionRequests cost.Per = "1000000-requests"
)

var pers = []cost.Per{cost.CPUHour, cost.HostHour, GB, GBMonth, Requests, TenThousand, MillionRequests}

// Month is the length of a GB-month: a twelfth of a year of 365 days.
const Month = 730 * time.Hour

// wanted holds the Per that the formulas require for each item.
var wanted = map[string]cost.Per{
	TransferIn: GB, TransferOut: GB, S3Storage: GBMonth, S3Put: Requests, S3Get: TenThousand,
	EBSStorage: GBMonth, EBSIO: MillionRequests,
}

// Transfer returns the cost of moving bytes into and out of the provider's site. As in the methods below, the error is
// of kind NotFound if the list lacks a price.
func (p Prices) Transfer(in, out int64) (cost.Money, error) {
	inward, outward, err := p.two(TransferIn, TransferOut)
	return bytes(inward, in).Plus(bytes(outward, out)), err
}

// S3 returns the cost of storing bytes as objects for the given time, and of the requests.
func (p Prices) S3(stored int64, kept time.Duration, puts, gets int64) (cost.Money, error) {
	put, get, err := p.two(S3Put, S3Get)
	space, none := p.rate(S3Storage)
	return storage(space, stored, kept).Plus(requests(put, puts)).Plus(requests(get, gets)), errors.Join(err, none)
}

// EBS returns the cost of keeping a volume of the given size for the given time, and of the requests to it.
func (p Prices) EBS(stored int64, kept time.Duration, ios int64) (cost.Money, error) {
	space, io, err := p.two(EBSStorage, EBSIO)
	return storage(space, stored, kept).Plus(requests(io, ios)), err
}

// bytes returns the price of n bytes, at a rate per GB.
func bytes(r cost.Rate, n int64) cost.Money { return scale(r.Price, n, 1, 1<<30) }

// storage returns the price of storing n bytes for the given time, at a rate per GB-month.
func storage(r cost.Rate, n int64, kept time.Duration) cost.Money {
	return scale(r.Price, n, int64(kept), (1<<30)*int64(Month/time.Second), int64(time.Second))
}

// requests returns the price of n requests, at a rate per number of requests.
func requests(r cost.Rate, n int64) cost.Money {
	return scale(r.Price, n, 1, map[cost.Per]int64{Requests: 1e3, TenThousand: 1e4, MillionRequests: 1e6}[r.Per])
}

// scale returns m × a × b ÷ over, rounded half up once; it saturates at the maximum. A rate that is absent has a price
// of 0 and counts as free.
func scale(m cost.Money, a, b int64, over ...int64) cost.Money {
	if m == 0 {
		return 0
	}
	product := func(factors ...int64) *big.Int {
		p := big.NewInt(1)
		for _, n := range factors {
			p.Mul(p, big.NewInt(n))
		}
		return p
	}
	num, den := product(int64(m), a, b, 2), product(over...)
	num.Add(num, den)
	num.Quo(num, den.Lsh(den, 1))
	if !num.IsInt64() {
		return math.MaxInt64
	}
	return cost.Money(num.Int64())
}

func (p Prices) two(a, b string) (cost.Rate, cost.Rate, error) {
	x, err := p.rate(a)
	y, err2 := p.rate(b)
	return x, y, errors.Join(err, err2)
}

func (p Prices) rate(item string) (cost.Rate, error) {
	r, ok := p.Rates[item]
	if !ok {
		return cost.Rate{}, corral.Errorf(corral.NotFound, "price list %s has no price for %s", p.Name, item)
	}
	return r, nil
}

//go:embed prices.csv
var published string

// Published returns the price lists that are included in Corral, by name: ec2-2009 from tables 4.2 to 4.4 of the
// thesis, and ec2-2010 from its table 4.9, in which outbound bytes are cheaper and inbound bytes are free.
func Published() map[string]Prices {
	lists, err := ReadPrices(strings.NewReader(published), "prices.csv")
	if err != nil {
		panic(err) // unreachable: a test parses the embedded lists
	}
	return lists
}

var columns = []string{"list", "item", "price", "unit", "per"}

const (
	maxBytes = 4 << 20
	maxName  = 100 // bytes in the name of a list or an item
)

// ReadPrices parses price lists from CSV with a header and one line for each item of each list: list, item, price (an
// exact decimal), unit and per. name is the file name for errors. Errors are of kind Invalid, with the place name:line,
// for malformed input, repeated items, and lists that mix units.
func ReadPrices(r io.Reader, name string) (map[string]Prices, error) {
	lists := make(map[string]Prices)
	line, err := input.Table(r, maxBytes, columns, func(record []string) error {
		return addPrice(lists, record)
	})
	if err == nil {
		return lists, nil
	}
	if line > 0 {
		name += ":" + strconv.Itoa(line)
	}
	return nil, corral.ErrorAt(corral.Invalid, name, "%w", err)
}

func addPrice(lists map[string]Prices, record []string) error {
	list, item, unit, per := record[0], record[1], record[3], cost.Per(record[4])
	for _, s := range []string{list, item} {
		if s == "" || len(s) > maxName {
			return fmt.Errorf("%.40q must be a name of 1 to %d bytes", s, maxName)
		}
	}
	price, err := cost.ParseAmount(record[2] + unit)
	if err != nil {
		return err
	}
	if !slices.Contains(pers, per) {
		return fmt.Errorf("%.40q must be one of %s", per, strings.Trim(fmt.Sprint(pers), "[]"))
	}
	if want, known := wanted[item]; known && per != want {
		return fmt.Errorf("the price of %s must be per %[3]s, not per %[2]s", item, per, want)
	}
	p, ok := lists[list]
	if !ok {
		p = Prices{Name: list, Rates: make(map[string]cost.Rate)}
		lists[list] = p
	}
	if _, twice := p.Rates[item]; twice {
		return fmt.Errorf("list %s has a second price for %s", list, item)
	}
	for _, other := range p.Rates {
		if other.Unit != price.Unit {
			return fmt.Errorf("list %s mixes prices in %s and %s", list, other.Unit, price.Unit)
		}
	}
	p.Rates[item] = cost.Rate{Price: price.Money, Unit: price.Unit, Per: per}
	return nil
}
