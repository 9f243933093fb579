//go:build soak

package revision_test

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFourHundredDeadlines(t *testing.T) { meetDeadlines(t, 400) }

func TestFourHundredLivesComeToRest(t *testing.T) { comeToRest(t, 400) }

func TestAnyBudgetIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) { keepBudget(t, r, anySpending(r)) })
}
