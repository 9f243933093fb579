package provision

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/hedging"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan"
)

// Requests converts pilots of a plan to requests for glideins, numbered from first. Times are relative to BeganAt; the
// request for a pilot that is due at once has no start time.
func Requests(row corral.Plan, pilots []plan.Pilot, first int) []api.NewGlidein {
	all := make([]api.NewGlidein, len(pilots))
	for i, q := range pilots {
		all[i] = api.NewGlidein{
			Site: q.Site, Cluster: row.ClusterName, Shape: q.Shape, Idle: q.Patience(), MinStay: q.MinStay,
			BatchOptions: corral.BatchOptions{Queue: q.Queue},
			Labels:       labelled(row),
		}
		all[i].Labels["pilot"] = strconv.Itoa(first + i)
		if q.Hedges != nil {
			all[i].Labels[hedging.Label] = strconv.Itoa(first + *q.Hedges)
		}
		if q.Submit > 0 {
			all[i].NotBefore = row.BeganAt.Add(time.Duration(q.Submit))
		}
	}
	return all
}

// Begin requests the pilots of p, the plan of a row, within the transaction that begins the plan; machine is the same
// as for ReadFacts. If a pilot cannot be requested, or a site's balance does not allow all pilots, the transaction must
// be rolled back.
func Begin(tx *store.Tx, row corral.Plan, p *plan.Plan, machine corral.SiteQueue) error {
	_, err := ask(tx, row, onTime(row, p), asking{at: row.Sites, speed: p.SpeedAt, machine: machine})
	return err
}

// onTime returns the pilots of a plan that begins. If an instant before which none may be submitted is nearer than when
// the plan was made, all are submitted sooner.
func onTime(row corral.Plan, p *plan.Plan) []plan.Pilot {
	all := slices.Clone(p.Pilots)
	for i := range all {
		all[i].Submit -= sooner(row, p)
	}
	return all
}

// sooner returns how much sooner the pilots of a plan that began are submitted than it was planned.
func sooner(row corral.Plan, p *plan.Plan) corral.Seconds {
	return p.Goal.NotBefore - p.Goal.From(row.BeganAt).NotBefore
}

// asking holds the parameters of a request for pilots, besides the plan.
type asking struct {
	at      map[string]corral.SiteID // sites that the pilots name
	speed   func(site string) corral.Speed
	first   int // the number of the first pilot
	machine corral.SiteQueue
	why     string // a suffix for "pilot 1 of plan 2" in the history of each pilot; may be empty
}

// ask creates the glideins of pilots of a plan, on behalf of its owner, and reserves their cost.
func ask(tx *store.Tx, row corral.Plan, pilots []plan.Pilot, with asking) (all []corral.Glidein, err error) {
	first := with.first
	cluster, err := tx.Cluster(row.Cluster)
	if err != nil {
		return nil, err
	}
	for i, in := range Requests(row, pilots, first) {
		if !in.NotBefore.After(tx.Now()) {
			in.NotBefore = time.Time{}
		}
		site, err := admit.SiteOfPlan(tx, with.at, in.Site)
		if err != nil {
			return nil, err
		}
		p := admit.GlideinRequest{Request: in, Owner: row.Owner, Site: site, Cluster: cluster, Machine: with.machine,
			Labels: []string{corral.PlanLabel, "pilot", hedging.Label}, Speed: with.speed(in.Site)}
		if q := pilots[i]; q.Follows != nil {
			if k := *q.Follows; k < 0 || k >= len(all) {
				return nil, fmt.Errorf("pilot %d of plan %d follows number %d of these, which is not one before it",
					first+i, row.ID, k)
			}
			p.Follows = admit.Following{Glidein: all[*q.Follows].ID, Wait: max(0, q.Start-q.Submit),
				After: max(0, q.Submit-pilots[*q.Follows].Start)}
		}
		tx.Because(fmt.Sprintf("pilot %d of plan %d%s", first+i, row.ID, with.why))
		g, err := admit.Glidein(tx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, admit.Reserve(tx, row.ID, pilots, all)
}
