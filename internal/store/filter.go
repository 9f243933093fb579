package store

import (
	"cmp"
	"strings"

	"github.com/corral-pilot/corral"
)

// A Page selects a part of a list. Lists are always in ascending order of ids.
type Page struct {
	After int64 // only ids greater than this
	Limit int   // maximum number of objects; 0: no limit
}

// A Filter selects from a list of objects. The zero value selects all objects that are not DELETED.
type Filter struct {
	All   bool   // includes DELETED objects
	Owner string // only this owner's objects; empty: all objects that the caller can see
	Page
}

// conditions collects the terms of a where clause, which are joined by "and". Values are always passed as parameters,
// so that a user's text never becomes SQL.
type conditions struct {
	terms []string
	args  []any
	order string // columns to sort by; "" is id
	limit int
}

// where returns conditions with a first term.
func where(term string, args ...any) conditions {
	return conditions{terms: []string{term}, args: args}
}

// add adds a term, an SQL condition with a ? for each of args.
func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// filter excludes DELETED objects, unless they are requested, and applies the page.
func (c *conditions) filter(f Filter) {
	if !f.All {
		c.add("state <> 'DELETED'")
	}
	if f.Owner != "" {
		c.add("owner = ?", f.Owner)
	}
	c.page(f.Page)
}

// page continues a list at the end of an earlier part. Ids grow, so objects created meanwhile come at the end and no
// object is listed twice.
func (c *conditions) page(p Page) {
	if p.After > 0 {
		c.add("id > ?", p.After)
	}
	c.limit = p.Limit
}

// labelledPlan is the plan in a row's labels, written exactly as in the indexes glideins_plan and runs_plan.
const labelledPlan = "json_extract(labels, '$." + corral.PlanLabel + "')"

// labels requires every pair of wanted; the column labels is a JSON object. The plan label is queried at each check
// of a provisioned plan and has its own indexes.
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
	b.WriteString(" order by " + cmp.Or(c.order, "id"))
	if c.limit > 0 {
		// If the limit is a plain parameter, SQLite uses its value for the query plan and recompiles the statement
		// whenever a value is bound. It does not do this if the limit is a sum.
		b.WriteString(" limit ? + 0")
		c.args = append(c.args, c.limit)
	}
	return b.String()
}
