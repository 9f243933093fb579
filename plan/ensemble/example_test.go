package ensemble_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// A budget of 10 dollars for six hours pays for two machines at a dollar for each hour begun. A workflow that needs
// four hours of computation cannot begin if running workflows need eight hours of the remaining nine.
func Example() {
	terms := ensemble.Hourly
	fmt.Println("machines:", terms.Machines(10_000_000, 6*time.Hour))
	fmt.Println("for 61 minutes:", terms.Amount(terms.Cost(61*time.Minute)))
	claim := ensemble.Claim{Runtime: 4 * time.Hour, Path: 2 * time.Hour, Begun: 8 * time.Hour}
	fmt.Println("not begun:", claim.Dear(terms, 9_000_000))

	// Completing the first workflow is worth more than completing both others.
	first, others := ensemble.ScoreOf([]bool{true, false, false}), ensemble.ScoreOf([]bool{false, true, true})
	fmt.Println(first, "and", others, "compare as", first.Compare(others))
	// Output:
	// machines: 2
	// for 61 minutes: 2USD
	// not begun: its tasks cost at least 4USD, but 1USD is left for them
	// 100 and 011 compare as 1
}
