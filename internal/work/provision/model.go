package provision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
)

// Facts are corrald's data about one site when a plan is made.
type Facts struct {
	Site    corral.Site
	Machine corral.SiteQueue // describes the machine, for a site without a batch system
	Waits   []corral.Wait
	Others  []corral.Wait       // at the owner's other sites of that batch system, read only if Waits is empty
	Stands  map[string]Standing // by queue: its present state, looked at only if neither Waits nor Others exist
	Load    corral.Load         // existing attempts
	Held    corral.Resources    // by the site's present and future glideins that are not about to end
	Ledger  cost.Ledger         // determines how much money may still be spent at the site
}

// latestWaits is the number of a site's latest waits that are considered.
const latestWaits = 4000

// ReadFacts reads corrald's data about a site; machine describes this machine for a site without a batch system. The
// pilots of the plan but do not count as holding cpus, because the plan's revisions count them themselves; if but is 0,
// all pilots count.
func ReadFacts(tx *store.Tx, site corral.Site, machine corral.SiteQueue, but corral.PlanID) (f Facts, err error) {
	f = Facts{Site: site, Machine: request.Machine(site, machine)}
	if site.System().Queueless { // batch systems report free resources themselves
		f.Held, err = held(tx, site, but)
	}
	if err != nil {
		return f, err
	}
	if f.Waits, err = tx.Waits(store.WaitFilter{Site: site.ID, Last: latestWaits}); err != nil {
		return f, err
	}
	if f.unseen() {
		if f.Others, err = elsewhere(tx, site); err != nil {
			return f, err
		}
	}
	if f.Load, err = tx.Load(site.ID); err != nil {
		return f, err
	}
	f.Ledger, err = tx.Ledger(site.ID)
	return f, err
}

// held returns the resources of a site that are held by glideins that remain, except glideins of one plan. Glideins of
// a plan whose run is over are about to be released.
func held(tx *store.Tx, site corral.Site, but corral.PlanID) (sum corral.Resources, err error) {
	all, err := tx.Held(site.ID)
	for id, r := range all {
		if err != nil || id == but && but != 0 {
			continue
		}
		var over string
		if id != 0 {
			var p corral.Plan
			if p, err = tx.PlanRow(id); err == nil {
				over, err = outlived(tx, p)
			}
		}
		if over == "" {
			sum = sum.Plus(r)
		}
	}
	return sum, err
}

// Sites returns a plan's model of each queue that a site's pilots may use, and describes the assumed or learned values.
// A site that accepts no pilots is omitted.
func Sites(facts []Facts, c Caution, now time.Time) (all []plan.Site, guessed []string) {
	for _, f := range facts {
		if !f.open() {
			continue
		}
		overhead, learned := f.overhead(c.Share)
		queues := f.queues()
		if learned > 0 && len(queues) > 0 {
			guessed = append(guessed, fmt.Sprintf("at site %s workers are ready %s after a job's start, as learned "+
				"from %s", f.Site.Name, overhead, counted(learned, "pilot")))
		}
		var few []string
		for _, q := range queues {
			few = append(few, f.fewWaits(c, q.Name)...)
			s := f.model(q)
			s.Overhead, s.Closed = overhead, f.closed(q, s.Margin, now)
			if s.Waits = f.waits(q.Name, c, now); s.Waits == nil {
				s.Waits, _ = f.prior(q.Name, c, now)
			}
			s.Wait = assumed(s.Waits, c.Share)
			all = append(all, s)
		}
		if f.Site.System().Queueless && f.Held.CPUs > 0 {
			guessed = append(guessed, fmt.Sprintf("of the %d cpus at site %s other pilots have %d", f.Machine.CPUs,
				f.Site.Name, f.Held.CPUs))
		}
		guessed = slices.Concat(guessed, f.ahead(now), few)
	}
	return all, guessed
}

// open reports whether the site accepts pilots.
func (f Facts) open() bool {
	return f.Site.State == corral.SiteNew || f.Site.State == corral.SiteStaging || f.Site.State == corral.SiteReady
}

// queues returns the queues that the site's own options name, or its default queue if they name none; a site without a
// batch system is a single queue.
func (f Facts) queues() []corral.SiteQueue {
	if f.Site.System().Queueless {
		machine := f.Machine
		machine.Name = "" // the name under which it was found is not valid in requests
		return []corral.SiteQueue{machine}
	}
	if f.Site.Facts == nil {
		return nil
	}
	asked := strings.Split(f.Site.Queue, ",")
	var all []corral.SiteQueue
	for _, q := range f.Site.Facts.Queues {
		if q.Closed == "" && q.CPUs > 0 && (f.Site.Queue == "" && q.Default || slices.Contains(asked, q.Name)) {
			all = append(all, q)
		}
	}
	return all
}

// model returns a plan's model of one queue, without its waits.
func (f Facts) model(q corral.SiteQueue) plan.Site {
	s := plan.Site{
		Name: f.Site.Name, Queue: q.Name,
		Host: corral.Resources{
			CPUs: q.CPUs, MemoryMiB: request.OrUnlimited(q.MemoryMiB), GPUs: q.GPUs, DiskMiB: plan.Unlimited,
		},
		Hosts:    min(request.OrUnlimited(q.MaxNodes), request.OrUnlimited(q.Nodes)),
		Pilots:   plan.Unlimited,
		CPUs:     request.OrUnlimited(q.Nodes * q.CPUs),
		Walltime: plan.Unbounded,
	}
	if s.Nodes = q.Types(); len(s.Nodes) > 0 {
		s.CPUs = 0
		for _, t := range s.Nodes {
			s.CPUs += t.Count * t.CPUs
		}
	}
	f.charge(&s)
	if q.MaxWalltime > 0 {
		s.Walltime = time.Duration(q.MaxWalltime)
		s.Margin = jobfiles.Reserve(s.Walltime)
	}
	if f.Site.System().Queueless { // all hosts are this one machine, where jobs wait in no queue
		s.CPUs, s.Hosts = max(0, q.CPUs-f.Held.CPUs), q.CPUs
		memory := plan.Unlimited
		if q.MemoryMiB > 0 {
			memory = max(1, q.MemoryMiB-f.Held.MemoryMiB)
		}
		s.Nodes = []corral.NodeType{{Count: 1, Resources: corral.Resources{CPUs: s.CPUs, GPUs: s.Host.GPUs,
			MemoryMiB: memory, DiskMiB: plan.Unlimited}}}
	}
	if most := f.Site.Limits.MaxQueued; most > 0 { // the limit applies only to waiting attempts
		s.Pilots = min(s.Pilots, max(0, most-f.Load.Queued))
	}
	limits := []int{f.Site.Limits.MaxRunning}
	if f.Site.Facts != nil {
		limits = append(limits, f.Site.Facts.MaxSubmit, f.Site.Facts.MaxJobs)
	}
	for _, limit := range limits {
		if limit > 0 {
			s.Pilots = min(s.Pilots, max(0, limit-f.Load.Queued-f.Load.Running))
		}
	}
	return s
}

// Work returns a plan's view of a workflow, and describes its estimates, which are rounded to milliseconds. If a task
// has no estimate, it returns an Unsatisfiable error that names the kinds of such tasks.
func Work(w *workflow.Workflow, x Experience) (work plan.Work, b Basis, err error) {
	e, err := newExpectation(w, x)
	if err != nil {
		return plan.Work{}, b, err
	}
	work = plan.Work{Name: w.Name, Graph: w.Graph, Tasks: make([]plan.Task, len(w.Tasks))}
	var unknown []int
	for i := range w.Tasks {
		task, known := e.task(i)
		if !known && e.rest(i) {
			unknown = append(unknown, i)
		}
		task.Bytes = w.Bytes(i)
		work.Tasks[i] = task
	}
	if len(unknown) > 0 {
		return work, b, noEstimate(work, unknown)
	}
	return work, e.basis(), nil
}

// mostKinds is the maximum number of kinds that an error names.
const mostKinds = 3

// noEstimate returns the error for tasks without an estimate.
func noEstimate(w plan.Work, tasks []int) error {
	kinds := map[string]bool{}
	for _, i := range tasks {
		kinds[w.Tasks[i].Kind] = true
	}
	all := slices.Sorted(maps.Keys(kinds))
	of := "kind "
	if len(all) > 1 {
		of = "kinds "
	}
	named := of + strings.Join(all[:min(len(all), mostKinds)], ", ")
	if more := len(all) - mostKinds; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return corral.ErrorAt(corral.Unsatisfiable, "task "+w.Tasks[tasks[0]].ID, "no estimate of the runtime of %s of "+
		"%s: give one for all such tasks by --default-runtime, or a profile of them by --profile",
		counted(len(tasks), "task"), named)
}

// Cluster returns a plan's assumptions about a cluster of the given kind, above all how long a task takes beyond its
// runtime. The embedded dispatcher adds a millisecond or two. An HTCondor job waits for the negotiator, which runs
// every other second in our pools, unless the job was already waiting when another job ended and can take over that
// job's claim. A released HTCondor worker needs another second until its daemons have ended. Streamed tasks are
// dispatched by the embedded dispatcher.
func Cluster(kind corral.ClusterKind, streamed bool) plan.Cluster {
	switch {
	case streamed:
		return plan.Cluster{Rate: 1500, Hop: 2 * time.Millisecond, Leave: 1200 * time.Millisecond}
	case kind == corral.Condor:
		return plan.Cluster{Rate: 10, Hop: 2 * time.Second, Reuse: 300 * time.Millisecond,
			Leave: 1200 * time.Millisecond}
	}
	return plan.Cluster{Rate: 1500, Hop: 2 * time.Millisecond}
}
