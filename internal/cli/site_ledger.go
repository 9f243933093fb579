package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan/cost"
)

// ledgerCommand shows the balance of a site, and the amounts that each plan has reserved and spent.
func (v siteVerbs) ledgerCommand() *cli.Command {
	return sites.verb("ledger", printing((*api.Client).SiteLedger, func(l api.Ledger) error {
		if err := ledgerTable.show(v.printer, l); err != nil || !v.forPeople() || len(l.Plans) == 0 {
			return err
		}
		fmt.Fprintln(v.out)
		return ledgerLines(l.Unit).list(v.printer, l.Plans)
	}))
}

var ledgerTable = listing[api.Ledger]{
	id: func(l api.Ledger) string { return l.Site },
	columns: []column[api.Ledger]{
		{"site", func(l api.Ledger) any { return l.Site }},
		{"price", func(l api.Ledger) any { return l.Price }},
		{"billing", func(l api.Ledger) any { return l.Billing }},
		{"balance", func(l api.Ledger) any { return limitedTo(l.Balance, l.Unit) }},
		{"reserved", func(l api.Ledger) any { return priced(cost.Amount{Money: l.Reserved, Unit: l.Unit}) }},
		{"billed", func(l api.Ledger) any { return spentText(l.Billed, l.BilledHours, l.Unit) }},
		{"used", func(l api.Ledger) any { return spentText(l.Used, l.UsedHours, l.Unit) }},
		{"left", func(l api.Ledger) any { return limitedTo(l.Left, l.Unit) }},
	},
}

// ledgerLines lists the plans of a ledger with amounts in its unit.
func ledgerLines(unit cost.Unit) listing[cost.Line] {
	return listing[cost.Line]{
		id: func(l cost.Line) string { return fmt.Sprint(l.Plan) },
		columns: []column[cost.Line]{
			{"plan", func(l cost.Line) any { return l.Plan }},
			{"reserved", func(l cost.Line) any { return priced(cost.Amount{Money: l.Reserved, Unit: unit}) }},
			{"billed", func(l cost.Line) any { return spentText(l.Billed, l.BilledHours, unit) }},
			{"used", func(l cost.Line) any { return spentText(l.Used, l.UsedHours, unit) }},
		},
	}
}

// limitedTo formats an amount that may be unlimited.
func limitedTo(m *cost.Money, unit cost.Unit) string {
	if m == nil {
		return "not limited"
	}
	return priced(cost.Amount{Money: *m, Unit: unit})
}

// spentText formats an amount of money together with the cpu-hours for which it was spent, unless the unit is
// cpu-hours.
func spentText(m cost.Money, hours float64, unit cost.Unit) string {
	text := priced(cost.Amount{Money: m, Unit: unit})
	if unit == cost.CPUHours {
		return text
	}
	return fmt.Sprintf("%s for %.3g ch", text, hours)
}
