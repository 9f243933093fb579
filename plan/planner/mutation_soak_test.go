//go:build soak

package planner

import "testing"

func TestAThousandBrokenPlansAreRefused(t *testing.T) { breakPlans(t, 1000) }
