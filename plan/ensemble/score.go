package ensemble

import (
	"math/big"
	"strings"
)

// A Score says which workflows of an ensemble were completed: a 1 or a 0 for each, in the order of priority. It is the
// exponential score Σ 2^−priority in binary digits, which compares as the strings do, exactly for any number of
// workflows; a float64 holds 53 (trap T32).
type Score string

// ScoreOf returns the score of an ensemble of which these workflows, by priority, were completed.
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

// Compare returns −1, 0 or 1 as s is worth less than, as much as, or more than another score of the same ensemble.
func (s Score) Compare(other Score) int { return strings.Compare(string(s), string(other)) }

// Count returns how many workflows were completed. As a goal it would reward the small ones of low priority.
func (s Score) Count() int { return strings.Count(string(s), "1") }

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
