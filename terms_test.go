package corral_test

import (
	"testing"

	"github.com/corral-pilot/corral"
)

// TestPriceOfTheBatchSystem: a site charges by the price that it was given, and otherwise by that of its batch system.
func TestPriceOfTheBatchSystem(t *testing.T) {
	t.Parallel()
	const given, found = "1USD/host-hour", "1ch/max(cpu=1,mem=0.25)-hour"
	for _, c := range []struct {
		price string
		facts *corral.SiteFacts
		want  string
	}{
		{"", nil, ""}, {given, nil, given}, {"", &corral.SiteFacts{Price: found}, found},
		{given, &corral.SiteFacts{Price: found}, given}, {"", &corral.SiteFacts{}, ""},
	} {
		site := corral.Site{SiteTerms: corral.SiteTerms{Price: c.price, Allocation: "5ch"}, Facts: c.facts}
		if got := site.Terms(); got.Price != c.want || got.Allocation != "5ch" || site.Price != c.price {
			t.Errorf("price %q, facts %+v: %+v", c.price, c.facts, got)
		}
	}
}
