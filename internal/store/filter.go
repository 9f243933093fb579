package store

import (
	"strings"

	"github.com/corral-pilot/corral"
)

// A Page selects a part of a list, which is always in ascending order of ids.
type Page struct {
	After int64 // only ids greater than this
	Limit int   // at most so many; 0: no limit
}

// A Filter selects from a list of objects. The zero value selects all that are not DELETED.
type Filter struct {
	All   bool   // DELETED ones too
	Owner string // this one's; empty: of all whose objects the caller sees
	Page
}

// conditions collects the terms of a where clause, all of which have to be true. Values always travel as parameters, so
// that no text from a user becomes SQL.
type conditions struct {
	terms []string
	args  []any
	order string // columns to sort by; "" is id
	limit int
}

// add adds a term, which is a condition of SQL with a ? for each of args.
func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// filter leaves out DELETED objects, unless they are wanted too, and takes the page.
func (c *conditions) filter(f Filter) {
	if !f.All {
		c.add("state <> 'DELETED'")
	}
	if f.Owner != "" {
		c.add("owner = ?", f.Owner)
	}
	c.page(f.Page)
}

// page continues a list where an earlier part of it ended. Ids grow, so what is created meanwhile comes at the end
// and no object is listed twice.
func (c *conditions) page(p Page) {
	if p.After > 0 {
		c.add("id > ?", p.After)
	}
	c.limit = p.Limit
}

// labelledPlan is the label of a row, in the very words of the indexes glideins_plan and runs_plan.
const labelledPlan = "json_extract(labels, '$." + corral.PlanLabel + "')"

// labels asks for every pair of wanted: the column labels is a JSON object. That which names a plan is looked for at
// each look at a plan that is under way, and has indexes.
func (c *conditions) labels(wanted map[string]string) {
	for key, value := range wanted {
		if key == corral.PlanLabel {
			c.add(labelledPlan+" = ?", value)
			continue
		}
		c.add("exists (select 1 from json_each(labels) as pair where pair.key = ? and pair.value = ?)", key, value)
	}
}

// clause returns everything after the table's name.
func (c *conditions) clause() string {
	var b strings.Builder
	if len(c.terms) > 0 {
		b.WriteString(" where " + strings.Join(c.terms, " and "))
	}
	if c.order == "" {
		c.order = "id"
	}
	b.WriteString(" order by " + c.order)
	if c.limit > 0 {
		// SQLite plans by the value of a limit that is a mere parameter, and compiles the statement again whenever one
		// is bound; it does not look into a sum.
		b.WriteString(" limit ? + 0")
		c.args = append(c.args, c.limit)
	}
	return b.String()
}
