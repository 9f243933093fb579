package cost

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// Prices is one price list: the prices of a provider at one time. Studies that used different lists are not comparable,
// so each cost names its list.
type Prices struct {
	Name  string
	Rates map[string]Rate // :: item → rate; all have the same unit
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

// wanted holds the Per that the formulas require for each item.
var wanted = map[string]Per{
	TransferIn: GB, TransferOut: GB, S3Storage: GBMonth, S3Put: Requests, S3Get: TenThousand,
	EBSStorage: GBMonth, EBSIO: MillionRequests,
}

// Transfer returns the cost of moving bytes into and out of the provider's site. As in the methods below, the error is
// of kind NotFound if the list lacks a price.
func (p Prices) Transfer(in, out int64) (Money, error) {
	inward, outward, err := p.two(TransferIn, TransferOut)
	return inward.bytes(in).Plus(outward.bytes(out)), err
}

// S3 returns the cost of storing bytes as objects for the given time, and of the requests.
func (p Prices) S3(stored int64, kept time.Duration, puts, gets int64) (Money, error) {
	put, get, err := p.two(S3Put, S3Get)
	storage, none := p.rate(S3Storage)
	return storage.storage(stored, kept).Plus(put.requests(puts)).Plus(get.requests(gets)), errors.Join(err, none)
}

// EBS returns the cost of keeping a volume of the given size for the given time, and of the requests to it.
func (p Prices) EBS(stored int64, kept time.Duration, ios int64) (Money, error) {
	storage, io, err := p.two(EBSStorage, EBSIO)
	return storage.storage(stored, kept).Plus(io.requests(ios)), err
}

func (p Prices) two(a, b string) (Rate, Rate, error) {
	x, err := p.rate(a)
	y, err2 := p.rate(b)
	return x, y, errors.Join(err, err2)
}

func (p Prices) rate(item string) (Rate, error) {
	r, ok := p.Rates[item]
	if !ok {
		return Rate{}, corral.Errorf(corral.NotFound, "price list %s has no price for %s", p.Name, item)
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
	list, item, unit, per := record[0], record[1], Unit(record[3]), Per(record[4])
	for _, s := range []string{list, item} {
		if s == "" || len(s) > maxName {
			return fmt.Errorf("%.40q must be a name of 1 to %d bytes", s, maxName)
		}
	}
	price, err := parseMoney(record[2])
	if err == nil {
		err = unit.check()
	}
	if err == nil && !slices.Contains(pers, per) {
		err = errPer(string(per))
	}
	if err != nil {
		return err
	}
	if want, known := wanted[item]; known && per != want {
		return fmt.Errorf("the price of %s must be per %[3]s, not per %[2]s", item, per, want)
	}
	p, ok := lists[list]
	if !ok {
		p = Prices{Name: list, Rates: make(map[string]Rate)}
		lists[list] = p
	}
	if _, twice := p.Rates[item]; twice {
		return fmt.Errorf("list %s has a second price for %s", list, item)
	}
	for _, other := range p.Rates {
		if other.Unit != unit {
			return fmt.Errorf("list %s mixes prices in %s and %s", list, other.Unit, unit)
		}
	}
	p.Rates[item] = Rate{price, unit, per}
	return nil
}
