package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/hedging"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A sight holds all of corrald's data about a plan and its run at an instant.
type sight struct {
	underway
	promise
	now      time.Time
	flow     *workflow.Workflow
	progress []execution.Progress
	workers  []corral.Worker // of the plan's cluster

	cluster   corral.Cluster
	facts     []Facts
	glideins  []corral.Glidein // of the plan, with their attempts, including DELETED ones
	others    []corral.Glidein // of the cluster
	transfers Transfers        // with which the plan was made
	ours      string           // the id of a plan whose workers are among the others, or empty
	revisions []corral.Revision
}

// read reads the sight's data from the store. Workers of an HTCondor pool may need a package that is not available at
// every site, so a plan for such a pool remains at the sites where it already has pilots.
func (s *sight) read(tx *store.Tx, machine corral.SiteQueue) (err error) {
	if s.cluster, err = tx.Cluster(s.plan.Cluster); err != nil {
		return err
	}
	s.glideins, err = tx.Glideins(store.GlideinFilter{Filter: store.Filter{All: true}, Labels: labelled(s.plan)})
	if err != nil {
		return err
	}
	s.others, err = tx.Glideins(store.GlideinFilter{Cluster: s.plan.Cluster, Live: true, InBrief: true})
	if err != nil {
		return err
	}
	if s.revisions, err = tx.Revisions(s.plan.ID, store.Page{}); err != nil {
		return err
	}
	sites, err := tx.Sites(store.Filter{})
	for _, site := range sites {
		if err != nil {
			return err
		}
		at := slices.ContainsFunc(s.glideins, func(g corral.Glidein) bool { return g.Site == site.ID })
		if !at && (s.cluster.Kind == corral.Condor || !s.asksFor(site)) {
			continue
		}
		f, err := ReadFacts(tx, site, machine, s.plan.ID)
		if err != nil {
			return err
		}
		s.facts = append(s.facts, f)
	}
	return err
}

// asksFor reports whether the plan may use a site. A different site with the same name as one of the plan's sites does
// not count.
func (s *sight) asksFor(site corral.Site) bool {
	asked := s.document.Asked.Sites
	return len(asked) == 0 || slices.Contains(asked, site.Name) && s.plan.Sites[site.Name] == site.ID
}

// at returns the sites at which pilots may be requested, by the names that decisions use.
func (s *sight) at() map[string]corral.SiteID {
	all := map[string]corral.SiteID{}
	for _, f := range s.facts {
		all[f.Site.Name] = f.Site.ID
	}
	return all
}

// sites returns the sites at which pilots may be requested, with the plan's assumptions, and the reasons why others are
// excluded: costs in another unit cannot be added to the plan's costs.
func (s *sight) sites() (all []plan.Site, without []string) {
	share := cmp.Or(s.document.Goal.Confidence, 0.5)
	facts := slices.DeleteFunc(slices.Clone(s.facts), func(f Facts) bool { return !s.asksFor(f.Site) })
	all, _ = Sites(facts, CautionOf(s.document.Goal, share), s.now)
	Join(all, clusterOf(s.cluster.Kind, s.run.Options.Stream, s.document))
	_, _ = WhatIf(all, s.document.Asked.WhatIf) // the assumptions were checked when the plan was made
	for i := range all {
		all[i].Speed = s.document.SpeedAt(all[i].Name)
		if all[i].Waits == nil { // as when the plan was made, if it assumed anything
			s.document.Assumed.Expect(&all[i])
		}
	}
	unit := s.document.Cost.Unit
	all = slices.DeleteFunc(all, func(site plan.Site) bool {
		other := site.Tariff.Unit()
		if other == unit {
			return false
		}
		without = append(without, fmt.Sprintf("site %s: its price is in %s, the plan's in %s", site.Name, other, unit))
		return true
	})
	return all, slices.Compact(without) // a site may have several queues
}

// tariff returns a site's charges, modified by the plan's assumptions.
func (s *sight) tariff(name string) plan.Tariff {
	i := slices.IndexFunc(s.facts, func(f Facts) bool { return f.Site.Name == name })
	if i < 0 {
		return plan.CoreHours
	}
	var at plan.Site
	s.facts[i].charge(&at)
	sites := []plan.Site{at}
	_, _ = WhatIf(sites, s.document.Asked.WhatIf)
	return sites[0].Tariff
}

// busy returns the set of glideins that have a worker with a task.
func (s sight) busy() map[corral.GlideinID]bool {
	busy := map[corral.GlideinID]bool{}
	for _, w := range s.workers {
		if w.RunningTasks > 0 || w.CPUsFree < w.CPUs {
			busy[w.Glidein] = true
		}
	}
	return busy
}

// since returns the time from the plan's beginning to an instant.
func (s sight) since(at time.Time) time.Duration { return at.Sub(s.plan.BeganAt) }

// view converts the sight to the input of a decision.
func (s sight) view(idle map[corral.GlideinID]time.Time) (revision.View, error) {
	document := s.document
	v := revision.View{Now: s.since(s.now).Round(time.Millisecond), Goal: document.Goal.From(s.plan.BeganAt),
		Promise: time.Duration(document.Makespan), Before: s.before(), Guesses: plan.Guesses(document.Estimates)}
	v.Shape = document.Asked.Shape
	v.Problem.Sites, v.Without = s.sites()
	v.Problem.Cluster = clusterOf(s.cluster.Kind, s.run.Options.Stream, document)
	s.transfers = assumedTransfers(document)
	work, _, err := Work(s.flow, Experience{Fallback: cmp.Or(time.Duration(s.run.Options.DefaultRuntime), time.Minute)})
	if err != nil {
		return v, err
	}
	for _, f := range s.facts {
		v.Grace = max(v.Grace, f.grace())
	}
	v.Problem.Work = s.asPlanned(work)
	v.Problem.Cluster = ofTask(v.Problem, s.run.Options.Clustering)
	of := map[corral.GlideinID]int{}
	second := hedging.Uncounted(s.glideins)
	for _, g := range s.glideins {
		q, ok := s.pilot(g, v.Problem, idle)
		if !ok {
			continue
		}
		v.Beside = append(v.Beside, others(q, g, s.plan.BeganAt)...)
		if second[g.ID] {
			v.Beside = append(v.Beside, q)
			continue
		}
		before, follows := of[g.Follows]
		follows = follows && v.Pilots[before].Phase != revision.Gone // after the other pilot's end it holds nothing
		of[g.ID] = len(v.Pilots)
		v.Pilots = append(v.Pilots, q)
		for i := range v.Problem.Sites {
			if s := &v.Problem.Sites[i]; s.Name == g.SiteName && !follows {
				take(s, q)
			}
		}
	}
	s.tasks(&v, of)
	s.transfers.Carry(&v.Problem)
	return v, nil
}

// take subtracts a pilot from a site's capacity. A submitted pilot is already part of the site's load, which counts
// pilots, not cpus.
func take(site *plan.Site, q revision.Pilot) {
	if q.Phase != revision.Gone {
		site.CPUs = max(0, site.CPUs-q.HeldCPUs())
	}
	if q.Phase == revision.Planned && site.Pilots < plan.Unlimited {
		site.Pilots = max(0, site.Pilots-1)
	}
}

// clusterOf returns the cluster model with which the plan was made: the learned model, if the plan's document contains
// it.
func clusterOf(kind corral.ClusterKind, streamed bool, document plan.Plan) plan.Cluster {
	if a := document.Assumed; a != nil {
		return a.Cluster()
	}
	return Cluster(kind, streamed)
}

// ofTask returns the cluster model for single tasks if tasks are clustered: each task is charged a share of its job's
// hop. A revision considers single tasks, because some tasks of a job may be done.
func ofTask(p plan.Problem, how string) plan.Cluster {
	c, err := clustering.Parse(how)
	jobs := len(p.Work.Jobs(c))
	if err != nil || jobs == 0 {
		return p.Cluster
	}
	share := func(d time.Duration) time.Duration {
		return d * time.Duration(jobs) / time.Duration(len(p.Work.Tasks))
	}
	of := p.Cluster
	of.Hop, of.Reuse = share(of.Hop), share(of.Reuse)
	return of
}

// asPlanned sets the estimates of tasks to those with which the plan was made.
func (p promise) asPlanned(work plan.Work) plan.Work {
	for i, t := range work.Tasks {
		if d, ok := p.runtimes[t.ID]; ok {
			work.Tasks[i].Runtime = d
		}
	}
	return work
}

// before summarises the existing revisions.
func (s sight) before() (b revision.Before) {
	for _, r := range s.revisions {
		b.Number = r.Number
		if len(r.Added) > 0 || slices.ContainsFunc(r.Dropped, func(c corral.PilotChange) bool {
			return c.Why != string(revision.Workless) // decisions need not wait for the effects of such a change
		}) {
			b.At = s.since(r.At)
		}
		b.Limited = len(r.Added) == 0 && (b.Limited || r.News == string(revision.Limited) || late(r))
		switch revision.News(r.News) {
		case revision.Late:
			b.Late = true
		case revision.InTime:
			b.Late = false
		case revision.Broke:
			b.Broke = true
		}
	}
	return b
}

// late reports whether a revision announces that the deadline will be missed because of limits. A revision announces
// only one piece of news.
func late(r corral.Revision) bool { return r.News == string(revision.Late) && len(r.Limits) > 0 }

// pilot returns a decision's view of a glidein of the plan; ok is false if the glidein has no number, because a user
// requested it.
func (s sight) pilot(g corral.Glidein, p plan.Problem, idle map[corral.GlideinID]time.Time) (revision.Pilot, bool) {
	number, err := strconv.Atoi(g.Labels["pilot"])
	q := revision.Pilot{Number: number, Began: -1, Ended: -1, Keep: plan.Unbounded, Tariff: s.tariff(g.SiteName),
		Pace:      plan.Pace{Speed: s.document.SpeedAt(g.SiteName), Transfer: s.transfers[g.SiteName]},
		Cancelled: g.Asked == corral.AskCancel,
		Pilot:     plan.Pilot{Site: g.SiteName, Queue: g.Queue, Shape: g.Shape}}
	q.Host = corral.Resources{
		CPUs: g.CPUs, MemoryMiB: request.OrUnlimited(g.MemoryMiB), GPUs: g.GPUs, DiskMiB: plan.Unlimited,
	}
	if site := p.Site(g.SiteName, g.Queue); site != nil {
		q.Overhead, q.Margin = site.Overhead, site.Margin
		q.Wait = site.Wait(plan.Shape{Hosts: g.Hosts, Host: q.Host, Walltime: time.Duration(g.Walltime)})
	}
	q.Submit = corral.Seconds(max(0, s.since(g.CreatedAt)))
	if !g.NotBefore.IsZero() {
		q.Submit = corral.Seconds(max(0, s.since(g.NotBefore)))
	}
	s.phase(&q, g)
	if since, ok := idle[g.ID]; ok && q.Phase == revision.Working {
		q.Idle = max(0, s.now.Sub(since))
	}
	if g.Idle > 0 { // it counts from the end of its last task
		q.Keep = max(time.Duration(g.Idle), q.Idle+stayLeft(g, s.now))
	}
	return q, err == nil
}

// stayLeft returns the rest of the minimum stay of a glidein's last attempt.
func stayLeft(g corral.Glidein, now time.Time) time.Duration {
	if n := len(g.Attempts); n > 0 && !g.Attempts[n-1].StartedAt.IsZero() {
		return time.Duration(g.MinStay) - now.Sub(g.Attempts[n-1].StartedAt)
	}
	return time.Duration(g.MinStay)
}

// phase sets the progress of a pilot, from its glidein's last attempt.
func (s sight) phase(q *revision.Pilot, g corral.Glidein) { phase(q, g, s.plan.BeganAt) }

// tasks fills in the progress of the tasks.
func (s sight) tasks(v *revision.View, of map[corral.GlideinID]int) {
	where := make(map[string]corral.Worker, len(s.workers))
	hosts := map[corral.GlideinID]int{} // :: glidein → number of its hosts that were numbered
	number := make(map[string]int, len(s.workers))
	for _, w := range s.workers {
		where[w.ID] = w
		number[w.ID] = hosts[w.Glidein]
		hosts[w.Glidein]++
	}
	others, at := present(s.others, s.workers, s.ours, s.now)
	for k := range others {
		others[k].Speed = s.document.SpeedAt(others[k].Site)
	}
	sites := s.whereabouts()
	v.Problem.Present = others
	v.Tasks = make([]revision.Task, len(s.progress))
	for i, p := range s.progress {
		t := revision.Task{State: p.State, Pilot: -1,
			Took: s.document.SpeedAt(sites[attemptOf(p.Worker)]).Estimate(p.Took)}
		if w, ok := where[jobfiles.OnGlidein(p.Worker)]; ok && p.State == corral.TaskRunning {
			t.Since = s.since(p.Since)
			if k, ours := of[w.Glidein]; ours {
				t.Pilot, t.Host = k, number[w.ID]
			} else if k, there := at[w.ID]; there {
				t.Pilot = len(v.Pilots) + k
				room := &others[k].Host // excludes the resources used by other tasks
				room.CPUs = min(w.CPUs, room.CPUs+v.Problem.Work.Task(i).Needs.CPUs)
			}
		}
		v.Tasks[i] = t
	}
}

// whereabouts returns the sites of the attempts on which tasks of the run may have run, keyed by the attempts' tags.
func (s sight) whereabouts() map[string]string {
	sites := map[string]string{}
	if s.document.Assumed == nil || len(s.document.Assumed.Speeds) == 0 {
		return sites // they are not needed
	}
	for _, list := range [][]corral.Glidein{s.glideins, s.others} {
		for _, g := range list {
			for _, a := range g.Attempts {
				sites[a.Tag] = g.SiteName
			}
		}
	}
	return sites
}

// attemptOf returns the tag of a worker's attempt.
func attemptOf(worker string) string {
	tag, _, _ := strings.Cut(worker, "/")
	return tag
}
