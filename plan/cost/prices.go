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

// Prices is one price list: what a provider asked at one time. Studies that used different lists are not comparable,
// so each cost says which one it is by.
type Prices struct {
	Name  string
	Rates map[string]Rate // :: item → rate, all of one unit
}

// The items that the formulas look up; a list may have others, such as types of machines.
const (
	TransferIn  = "transfer-in"
	TransferOut = "transfer-out"
	S3Storage   = "s3-storage"
	S3Put       = "s3-put"
	S3Get       = "s3-get"
	EBSStorage  = "ebs-storage"
	EBSIO       = "ebs-io"
)

// wanted says per what the formulas take the price of an item.
var wanted = map[string]Per{
	TransferIn: GB, TransferOut: GB, S3Storage: GBMonth, S3Put: Requests, S3Get: TenThousand,
	EBSStorage: GBMonth, EBSIO: MillionRequests,
}

// Transfer returns the cost of moving bytes into the provider's site and out of it. Here and below the error is of kind
// NotFound if the list lacks a price.
func (p Prices) Transfer(in, out int64) (Money, error) {
	inward, outward, err := p.two(TransferIn, TransferOut)
	return inward.bytes(in).Plus(outward.bytes(out)), err
}

// S3 returns the cost of keeping bytes as objects for so long, and of the requests.
func (p Prices) S3(stored int64, kept time.Duration, puts, gets int64) (Money, error) {
	put, get, err := p.two(S3Put, S3Get)
	storage, none := p.rate(S3Storage)
	return storage.storage(stored, kept).Plus(put.requests(puts)).Plus(get.requests(gets)), errors.Join(err, none)
}

// EBS returns the cost of keeping a volume of bytes for so long, and of the requests to it.
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
		return Rate{}, corral.Errorf(corral.NotFound, "price list %s has no price of %s", p.Name, item)
	}
	return r, nil
}

//go:embed prices.csv
var published string

// Published returns the price lists that come with Corral, by name: ec2-2009 of the thesis's tables 4.2 to 4.4, and
// ec2-2010 of its table 4.9, where bytes out cost less and bytes in nothing.
func Published() map[string]Prices {
	lists, err := ReadPrices(strings.NewReader(published), "prices.csv")
	if err != nil {
		panic(err) // unreachable: a test reads them
	}
	return lists
}

var columns = []string{"list", "item", "price", "unit", "per"}

const (
	maxBytes = 4 << 20
	maxName  = 100 // bytes of a list or an item
)

// ReadPrices reads price lists from CSV: list, item, price (an exact decimal), unit and per, one line for each item
// of each list, below a header; name is what errors call the file. They are of kind Invalid, with the place
// name:line, for anything else, for an item given twice, and for lists that mix units.
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
			return fmt.Errorf("%.40q is not a name of 1 to %d bytes", s, maxName)
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
		return fmt.Errorf("the price of %s is per %s, want %s", item, per, want)
	}
	p, ok := lists[list]
	if !ok {
		p = Prices{Name: list, Rates: make(map[string]Rate)}
		lists[list] = p
	}
	if _, twice := p.Rates[item]; twice {
		return fmt.Errorf("list %s has a second price of %s", list, item)
	}
	for _, other := range p.Rates {
		if other.Unit != unit {
			return fmt.Errorf("list %s has prices in %s and in %s", list, other.Unit, unit)
		}
	}
	p.Rates[item] = Rate{price, unit, per}
	return nil
}
