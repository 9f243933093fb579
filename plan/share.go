package plan

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// A Share is a ratio in millionths, such as a utilization or a weight α of cost.
type Share int64

// Whole is the share 1.
const Whole Share = 1_000_000

// ParseShare parses a decimal number with at most six decimal places. Errors are of kind Invalid.
func ParseShare(text string) (Share, error) {
	whole, part, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", max(0, 6-len(part))), 10, 40)
	if err != nil || len(part) > 6 || whole == "" {
		return 0, corral.Errorf(corral.Invalid,
			"%.40q must be a number such as 0.7, with at most six decimal places", text)
	}
	return Share(n), nil
}

// String formats s in the syntax of ParseShare.
func (s Share) String() string { return strconv.FormatFloat(float64(s)/float64(Whole), 'f', -1, 64) }

// MarshalJSON writes s as a decimal number, exactly.
func (s Share) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON parses a number, and rounds it to millionths.
func (s *Share) UnmarshalJSON(text []byte) error {
	var n float64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if n *= float64(Whole); !(math.Abs(n) < 1<<40) {
		return corral.Errorf(corral.Invalid, "%.40s is not a share", text)
	}
	*s = Share(math.Round(n))
	return nil
}

// Compare returns −1, 0 or 1 if s is less than, equal to, or greater than part ÷ whole; whole must be positive.
func (s Share) Compare(part, whole int) int {
	return cmp.Compare(int64(s)*int64(whole), int64(part)*int64(Whole))
}

// Of returns the share of n, rounded up.
func (s Share) Of(n int) int { return int((int64(s)*int64(n) + int64(Whole) - 1) / int64(Whole)) }

// Part returns the share of an amount, rounded up to a whole micro-unit; it saturates at the maximum.
func (s Share) Part(m cost.Money) cost.Money {
	part := new(big.Int).Mul(big.NewInt(int64(s)), big.NewInt(int64(m)))
	part.Add(part, big.NewInt(int64(Whole)-1)).Quo(part, big.NewInt(int64(Whole)))
	if !part.IsInt64() {
		return math.MaxInt64
	}
	return cost.Money(part.Int64())
}
