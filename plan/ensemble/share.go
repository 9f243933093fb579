package ensemble

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// A Share is a ratio in millionths, such as a utilisation or the weight α of SPSS.
type Share int64

// Whole is a share of one.
const Whole Share = 1_000_000

// ParseShare reads a decimal number with at most six digits behind the point. Errors are of kind Invalid.
func ParseShare(text string) (Share, error) {
	whole, part, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", max(0, 6-len(part))), 10, 40)
	if err != nil || len(part) > 6 || whole == "" {
		return 0, corral.Errorf(corral.Invalid,
			"%.40q is not a number such as 0.7, with at most six digits behind the point", text)
	}
	return Share(n), nil
}

// String writes s as ParseShare reads it.
func (s Share) String() string { return strconv.FormatFloat(float64(s)/float64(Whole), 'f', -1, 64) }

// MarshalJSON writes s as a decimal number, exactly.
func (s Share) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Share) UnmarshalJSON(text []byte) (err error) {
	*s, err = ParseShare(string(text))
	return err
}

// Compare returns −1, 0 or 1 as s is less than part ÷ whole, equal, or more; whole is positive.
func (s Share) Compare(part, whole int) int {
	return cmp.Compare(int64(s)*int64(whole), int64(part)*int64(Whole))
}

// Of returns the share of n, rounded up.
func (s Share) Of(n int) int { return int((int64(s)*int64(n) + int64(Whole) - 1) / int64(Whole)) }

// Part returns the share of money, rounded up to a whole micro-unit.
func (s Share) Part(m cost.Money) cost.Money {
	part := ceil(product(int64(s), int64(m)), big.NewInt(int64(Whole)))
	return cost.Money(clamp(part))
}
