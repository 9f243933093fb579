package ensemble

import (
	"math"
	"math/big"
	"strings"
)

// A Score holds one digit for each workflow of an ensemble, in order of priority: 1 if the workflow was completed,
// otherwise 0. It represents the exponential score Σ 2^−priority in binary, so that comparing strings compares scores
// exactly for any number of workflows; a float64 can represent only 53 digits.
type Score string

// ScoreOf returns the score of an ensemble; completed is indexed by priority.
func ScoreOf(completed []bool) Score {
	digits := make([]byte, len(completed))
	for i, done := range completed {
		digits[i] = '0'
		if done {
			digits[i] = '1'
		}
	}
	return Score(digits)
}

// Compare returns −1, 0 or 1 if s is less than, equal to, or greater than another score of the same ensemble.
func (s Score) Compare(other Score) int { return strings.Compare(string(s), string(other)) }

// Count returns the number of completed workflows. As an objective it would favour small workflows of low priority.
func (s Score) Count() int { return strings.Count(string(s), "1") }

// Exponential returns Σ 2^−priority, rounded: a float64 holds the digits of 53 workflows.
func (s Score) Exponential() (sum float64) {
	for i, digit := range s {
		if digit == '1' {
			sum += math.Ldexp(1, -i)
		}
	}
	return sum
}

// Linear returns Σ 1 ÷ (priority + 1), exactly.
func (s Score) Linear() *big.Rat {
	sum := new(big.Rat)
	for i, digit := range s {
		if digit == '1' {
			sum.Add(sum, big.NewRat(1, int64(i)+1))
		}
	}
	return sum
}
