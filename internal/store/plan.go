package store

import (
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

var plans = table[corral.Plan]{
	noun:  corral.ObjectPlan,
	name:  "plans",
	owner: "owner",
	columns: func(p *corral.Plan) []column {
		return []column{
			{"id", orNull(&p.ID)},
			{"owner", &p.Owner},
			{"cluster_id", &p.Cluster},
			{"workflow", &p.Workflow},
			{"digest", &p.Digest},
			{"document", asJSON(&p.Document)},
			{"state", &p.State},
			{"reason", &p.Reason},
			{"auto", &p.Auto},
			{"sites", asJSON(&p.Sites)},
			{"created_at_ms", at(&p.CreatedAt)},
			{"began_at_ms", at(&p.BeganAt)},
			{"updated_at_ms", at(&p.UpdatedAt)},
			{"(select name from clusters where clusters.id = cluster_id)", &p.ClusterName},
			{"(null)", asJSON(&p.Summary)},
		}
	},
	about: func(p corral.Plan) []Subject {
		return []Subject{{corral.ObjectPlan, int64(p.ID)}}
	},
}

// CreatePlan stores p with its given State, INFEASIBLE or READY, and sets its ID and times.
func (t *Tx) CreatePlan(p corral.Plan) (corral.Plan, error) {
	p.ID, p.BeganAt, p.CreatedAt, p.UpdatedAt = 0, time.Time{}, t.now, t.now
	return plans.create(t, p, string(p.State))
}

// Plan returns the plan with this id, DELETED or not.
func (t *Tx) Plan(id corral.PlanID) (corral.Plan, error) {
	return plans.one(t, id, "id = ?", id)
}

// summary is an SQL expression that summarizes a document in the same way as plan.Summary.
const summary = `(select json_object('feasible', json(document -> '$.feasible'),
	'pilots', coalesce(json_array_length(document, '$.pilots'), 0), 'makespan_s', json(document -> '$.makespan_s'),
	'core_hours', json(document -> '$.core_hours'), 'cost', json(document -> '$.cost'),
	'peak_cpus', json(document -> '$.peak_cpus'), 'waste', json(document -> '$.waste')))`

// Plans lists plans, with a Summary in place of the document, which is long for a workflow of many tasks. The method
// Plan returns the document.
func (t *Tx) Plans(f Filter) ([]corral.Plan, error) {
	return briefPlans(summary).filtered(t, f)
}

// Provisioned lists the PROVISIONED plans, without their documents. The index uses exactly this condition.
func (t *Tx) Provisioned() ([]corral.Plan, error) {
	return briefPlans("(null)").list(t, where("state = 'PROVISIONED'"))
}

// Budgeted reports whether a plan has a budget, without reading its document. Invalid JSON has none.
func (t *Tx) Budgeted(id corral.PlanID) (yes bool, err error) {
	term, of := t.seesOwner("owner")
	err = t.row("select case when json_valid(document) then document -> '$.goal.budget' is not null else 0 end "+
		"from plans where id = ? and "+term, append([]any{id}, of...), &yes)
	return yes, wrap.Errorf(err, "looking for the budget of plan %d", id)
}

// LearnsNothing reports whether a plan was requested without what earlier runs have learned. It reads only this part
// of the document. A plan that does not exist, and one whose document is invalid JSON, was not.
func (t *Tx) LearnsNothing(id corral.PlanID) (yes bool, err error) {
	term, of := t.seesOwner("owner")
	err = t.row("select exists (select 1 from plans where id = ? and case when json_valid(document) then "+
		"document ->> '$.asked.no_learn' else 0 end and "+term+")", append([]any{id}, of...), &yes)
	return yes, wrap.Errorf(err, "reading what was requested of plan %d", id)
}

// PlanRow returns the plan with this id, DELETED or not, without its document.
func (t *Tx) PlanRow(id corral.PlanID) (corral.Plan, error) {
	return briefPlans("(null)").one(t, id, "id = ?", id)
}

// briefPlans returns the table for reading plans without their documents, with an expression for their Summary.
func briefPlans(summary string) table[corral.Plan] {
	brief := plans
	brief.columns = func(p *corral.Plan) []column {
		all := plans.columns(p)
		i := slices.IndexFunc(all, func(c column) bool { return c.name == "document" })
		all[i].name = "(null)"
		all[len(all)-1].name = summary
		return all
	}
	return brief
}

// PilotsOf counts the glideins that a plan has requested, and the live ones among them.
func (t *Tx) PilotsOf(plan corral.PlanID) (all, live int, err error) {
	term, of := t.seesOwner("owner")
	err = t.row(`
		select
			count(*),
			count(*) filter (where `+liveGlidein+`)
		from glideins
		where `+labelledPlan+` = ? and `+term, append([]any{strconv.FormatInt(int64(plan), 10)}, of...), &all, &live)
	return all, live, wrap.Errorf(err, "counting the pilots of plan %d", plan)
}

// MovePlan applies move to a plan.
func (t *Tx) MovePlan(id corral.PlanID, move corral.PlanMove, reason string) (corral.Plan, error) {
	return plans.move(t, id, func(p corral.Plan) (corral.Plan, []corral.Entry, error) {
		return p.Apply(move, reason, t.now)
	})
}
