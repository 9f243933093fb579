package slot

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/plan/cost"
)

// columns of the CSV form. A line is one slot:
//
//	site         name, up to 100 bytes; the lines of a site need not be adjacent
//	start_s      seconds from the time of the offer, with at most three decimal places
//	length_s     seconds, likewise; positive
//	processors   at least 1
//	price        per processor and hour, a decimal number; empty: 1
//	fee          per piece that is taken; empty: 0
//	divisible    true or false
//	extensible   true or false
var columns = []string{"site", "start_s", "length_s", "processors", "price", "fee", "divisible", "extensible"}

// The limits of a file of slots.
const (
	maxBytes = 32 << 20
	maxSlots = 100_000
	maxName  = 100
)

// ReadCSV reads the offers of sites; name is the file name for errors. Offers are made at instant 0; they are in the
// order in which the sites first occur, and their slots are in the order of the file. A site's number of processors is
// the maximum offered at once. Errors are of kind Invalid, with the place name:line, for lines that violate the format,
// and for files of more than 32 MiB or 100,000 slots. A file without slots is an error of kind Unsatisfiable.
func ReadCSV(r io.Reader, name string) ([]Offer, error) {
	var all []Offer
	n := 0
	line, err := input.Table(r, maxBytes, columns, func(record []string) error {
		if n++; n > maxSlots {
			return fmt.Errorf("the file has more than %d slots", maxSlots)
		}
		s, err := parse(record)
		if err != nil {
			return err
		}
		site := slices.IndexFunc(all, func(o Offer) bool { return o.Site == record[0] })
		if site < 0 {
			site = len(all)
			all = append(all, Offer{Site: strings.Clone(record[0])})
		}
		all[site].Slots = append(all[site].Slots, s)
		return nil
	})
	if err != nil {
		if line > 0 {
			name += ":" + strconv.Itoa(line)
		}
		return nil, corral.ErrorAt(corral.Invalid, name, "%w", err)
	}
	if n == 0 {
		return nil, corral.ErrorAt(corral.Unsatisfiable, name, "no site offers a slot")
	}
	for i := range all {
		all[i].Processors = most(all[i].Slots)
	}
	return all, nil
}

// parse parses a line.
func parse(record []string) (s Slot, err error) {
	if record[0] == "" || len(record[0]) > maxName {
		return s, fmt.Errorf("site %.40q must have a name of 1 to %d bytes", record[0], maxName)
	}
	if s.Start, err = seconds("start_s", record[1]); err != nil {
		return s, err
	}
	if s.Length, err = seconds("length_s", record[2]); err != nil {
		return s, err
	}
	if s.Processors, err = strconv.Atoi(record[3]); err != nil {
		return s, fmt.Errorf("processors %.40q is not a whole number", record[3])
	}
	if s.Price, err = money("price", cmp.Or(record[4], "1")); err != nil {
		return s, err
	}
	if s.Fee, err = money("fee", cmp.Or(record[5], "0")); err != nil {
		return s, err
	}
	for i, to := range []*bool{&s.Divisible, &s.Extensible} {
		switch column := len(columns) - 2 + i; record[column] {
		case "true":
			*to = true
		case "false":
		default:
			return s, fmt.Errorf("%s %.40q is neither true nor false", columns[column], record[column])
		}
	}
	return s, s.Check()
}

// seconds parses a decimal number of seconds exactly.
func seconds(column, text string) (time.Duration, error) {
	whole, part, point := strings.Cut(text, ".")
	digits := whole + part
	if whole == "" || point && part == "" || len(part) > 3 || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%s %.40q must be a number of seconds such as 3600 or 0.5, with at most three decimal "+
			"places", column, text)
	}
	ms, err := strconv.ParseInt(digits+strings.Repeat("0", 3-len(part)), 10, 64)
	if err != nil || ms > mostTime.Milliseconds() {
		return 0, fmt.Errorf("%s %.40q is more than 30 years", column, text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// money parses a decimal amount.
func money(column, text string) (cost.Money, error) {
	a, err := cost.ParseAmount(text + string(cost.ServiceUnits))
	if err != nil {
		return 0, fmt.Errorf("%s %.40q is not an amount such as 1 or 0.25", column, text)
	}
	return a.Money, nil
}

// most returns the maximum number of processors offered at once.
func most(all []Slot) int {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, s := range all {
		changes = append(changes, change{s.Start, s.Processors})
		if !s.Extensible {
			changes = append(changes, change{s.End(), -s.Processors})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by))
	})
	now, top := 0, 0
	for _, c := range changes {
		now += c.by
		top = max(top, now)
	}
	return top
}

// WriteCSV writes offers in the format of ReadCSV, with starts relative to the instant of each offer.
func WriteCSV(w io.Writer, offers []Offer) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // out keeps the error
	number := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	for _, o := range offers {
		for _, s := range o.Slots {
			_ = out.Write([]string{o.Site, number(s.Start - o.At), number(s.Length), strconv.Itoa(s.Processors),
				s.Price.String(), s.Fee.String(), strconv.FormatBool(s.Divisible), strconv.FormatBool(s.Extensible)})
		}
	}
	out.Flush()
	return out.Error()
}
