package sim

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

// A simulation is the state of one simulated scenario.
type simulation struct {
	*clock
	Scenario
	run      *run
	cluster  *cluster
	sites    []*site
	trace    *Trace
	jobs     corral.JobID // ID of the last job
	glideins corral.GlideinID
	pasts    map[corral.GlideinID]*Past // of the pilots that have one
	tag      func(corral.JobID) string  // workers are named TAG/HOST; slots are filled in the order of these names

	policy     polling
	paced      []*paced             // pilots whose submission depends on the progress of the run
	polling    bool                 // a check of the postponed ones is scheduled
	stuckSince time.Duration        // since when tasks are ready, none runs, and no pilot comes; 0: that is not so
	capacities []execution.Capacity // of the latest offer
	present    map[corral.JobID]int // number of registered cpus of each attempt in that offer
}

const (
	defaultEvery   = 10 * time.Second
	defaultStall   = 5 * time.Minute // the same as for real runs
	defaultHorizon = 366 * 24 * time.Hour
)

// defaultBegin is arbitrary, but it must not be the zero time, which records cannot represent.
var defaultBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Run simulates a scenario and returns its trace, which is deterministic. It panics if an ask names an unknown site,
// because that is a bug in the caller.
func Run(s Scenario) *Trace {
	return begin(s).play()
}

// play runs the simulation to its end.
func (x *simulation) play() *Trace {
	s := &x.Scenario
	for _, a := range s.Asks {
		x.ask(a)
	}
	x.run.step()
	x.control()
	x.run.attend()
	for len(x.events) > 0 {
		if x.run.ending != "" && x.settled() {
			break
		}
		e := x.pop()
		if x.now > x.Horizon {
			x.now = x.Horizon
			x.end(BrokenOff)
			break
		}
		e.do()
		for x.run.unread() {
			x.run.step()
		}
		x.run.attend()
		x.hasten()
	}
	x.end(BrokenOff) // unreachable: there are no more events, but a run that cannot continue has stalled
	return x.trace
}

// begin returns a simulation at its beginning.
func begin(s Scenario) *simulation {
	s.Every, s.Stall = cmp.Or(s.Every, defaultEvery), cmp.Or(s.Stall, defaultStall)
	s.Horizon = cmp.Or(s.Horizon, defaultHorizon)
	if s.Begin.IsZero() {
		s.Begin = defaultBegin
	}
	x := &simulation{clock: &clock{begin: s.Begin}, Scenario: s, tag: tag, pasts: map[corral.GlideinID]*Past{},
		present: map[corral.JobID]int{}}
	x.trace = &Trace{Begin: s.Begin, Over: -1, worked: map[string]worked{}}
	x.run = &run{clock: x.clock, x: execution.New(s.Work), offer: x.offer, changed: true,
		clustered: s.Work.Clusters != nil, parting: parting{at: Never}, observe: s.Observe,
		trace: x.trace, work: &x.Work}
	x.run.watch.Patience = s.Stall
	x.cluster = &cluster{
		clock: x.clock, run: x.run, matcher: matching.Matcher[*entry]{StartMargin: execution.StartMargin},
		of: map[*matching.Slot[*entry]]*member{}, begun: map[int]*entry{}, hop: wholeUp(s.Cluster.Turn()),
		way:   wholeUp(s.Cluster.Hop - s.Cluster.Turn()),
		lease: cmp.Or(s.Cluster.Lease, defaultLease), takes: x.takes, bytes: x.bytes,
	}
	if s.Cluster.Rate > 0 {
		x.cluster.gap = time.Duration(float64(time.Second) / s.Cluster.Rate)
	}
	x.run.cluster = x.cluster
	for i, of := range s.Sites {
		x.sites = append(x.sites, newSite(x, corral.SiteID(i+1), of))
	}
	return x
}

// tag returns the name of a pilot's job.
func tag(id corral.JobID) string { return fmt.Sprintf("corral-sim-%05d", id) }

// ask records a request.
func (x *simulation) ask(a Ask) {
	if a.Release != corral.AskNothing {
		for _, s := range x.sites {
			s.apply(reconcile.AskGlidein{Glidein: a.Glidein, Ask: a.Release, Reason: "asked by the control"})
		}
		return
	}
	s := x.site(a.Site, a.Queue)
	x.glideins++
	g := corral.Glidein{ID: x.glideins, Shape: a.Shape, Speed: s.Speed, Idle: corral.Seconds(a.Idle),
		MinStay: a.MinStay, Overlap: corral.Seconds(a.Overlap), Resubmit: a.Resubmit}
	g.Hosts = max(1, g.Hosts)
	if g.MemoryMiB == 0 {
		g.MemoryMiB = s.Host.MemoryMiB
	}
	if a.Takes > 0 {
		g.Follows, g.FollowsAfter, g.FollowsWait = a.Takes, corral.Seconds(a.After), max(0, a.Start-a.Submit)
	}
	if at := wholeUp(time.Duration(a.Submit)); at > x.now {
		g.NotBefore = x.begin.Add(at)
	}
	if a.Past != nil {
		x.pasts[g.ID], g.Speed = a.Past, a.Past.Speed
		for _, r := range a.Past.Running {
			x.cluster.begun[r.Task] = nil
		}
	}
	cluster := corral.Cluster{ID: 1, Name: "default", Kind: corral.Embedded, State: corral.ClusterReady}
	s.apply(reconcile.CreateGlidein{Glidein: g, Cluster: cluster})
	if len(a.Pace.First) > 0 && !g.NotBefore.IsZero() {
		p := &paced{site: s, glidein: g.ID, pilot: a.Pace, at: g.NotBefore}
		p.pilot.Planned = g.NotBefore
		x.paced = append(x.paced, p)
		x.at(x.since(g.NotBefore)-time.Millisecond, x.pace)
	}
}

func (x *simulation) site(name, queue string) *site {
	for _, s := range x.sites {
		if s.Name == name && s.Queue == queue {
			return s
		}
	}
	panic("sim: no site " + name + " with queue " + queue)
}

func (x *simulation) view() View {
	v := View{Tasks: x.run.x.Counts(), Pilots: x.trace.Pilots, Workers: x.workers}
	v.Progress = func() []execution.Progress { return execution.ProgressOf(x.run.x) }
	for _, m := range x.cluster.members {
		for _, e := range m.running {
			v.BusyCPUs += e.cpus()
		}
		if m.phase == taking {
			v.CPUs += m.slot.Host.CPUs
		}
	}
	v.QueuedCPUs = x.cluster.wanted
	return v
}

// workers returns the place of each worker that may run tasks.
func (x *simulation) workers() map[string]Place {
	all := make(map[string]Place, len(x.cluster.members))
	for _, m := range x.cluster.members {
		p := Place{Pilot: m.pilot.held, Host: m.host.Number, Idle: -1}
		if m.empty() {
			p.Idle = x.now - m.idleSince
		}
		all[m.slot.ID] = p
	}
	return all
}

// offer returns the capacity at an instant: the present workers, and the workers that glideins have yet to provide. It
// is valid until the next call.
func (x *simulation) offer(at time.Time) execution.Offer {
	offer := execution.Offer{Capacities: x.capacities[:0]}
	clear(x.present)
	for _, m := range x.cluster.members {
		w := m.worker()
		offer.Capacities = append(offer.Capacities, execution.CapacityOf(w, at))
		if w.Connected && !w.Draining {
			offer.CPUs += w.CPUs
			x.present[m.pilot.job.ID] += w.CPUs
		}
	}
	for _, s := range x.sites {
		offer.Capacities = s.offers(offer.Capacities, x.present, at)
	}
	x.capacities = offer.Capacities
	return offer
}

// bytes returns the transfer size of a task.
func (x *simulation) bytes(t *task) int64 {
	if x.Bytes == nil {
		return 0
	}
	return x.Bytes(t.index)
}

// takes returns the transfer time and the runtime of an attempt, and its result.
func (x *simulation) takes(t *task, m *member) (way, took time.Duration, status execution.Status) {
	way = m.pilot.s.Transfer.Takes(x.bytes(t))
	took = x.Work.Tasks[t.index].Estimate
	if x.Runtime != nil {
		took = x.Runtime(t.index, t.attempt)
	}
	if x.Speed != nil {
		took = scaled(took, x.Speed(m.host))
	}
	took = m.pilot.s.Speed.Takes(took)
	if f := x.Failures.Task; f != nil {
		if share := f(t.index, t.attempt); share < 1 {
			return way, scaled(took, share), execution.Failed
		}
	}
	return way, took, execution.Done
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// settled reports whether the simulation can end after the run has ended: it can at once or, with Linger, when no pilot
// is left. It records the end of the run.
func (x *simulation) settled() bool {
	if x.trace.Over < 0 {
		x.trace.Over = x.now
	}
	for _, s := range x.sites {
		if x.Linger && len(s.pilots) > 0 {
			return false
		}
	}
	return true
}

// end completes the trace. Pilots that have not ended by then are recorded as removed.
func (x *simulation) end(unless Ending) {
	t := x.trace
	if t.Ending != "" {
		return
	}
	if t.Ending, t.Why = cmp.Or(x.run.ending, unless), x.run.why; t.Over < 0 {
		t.Over = x.now
	}
	for i := range t.Pilots {
		if h := &t.Pilots[i]; h.End < 0 {
			h.End, h.Outcome = x.now, corral.OutcomeRemoved
			if h.Ready >= 0 {
				h.End += x.Cluster.Leave
			}
		}
	}
	t.Records, t.x = x.run.journal, x.run.x
}

// Runs simulates n scenarios in parallel, and returns the value that the function of returns for the trace of each. The
// results do not depend on the number of processors. Both functions are called concurrently. Once ctx is cancelled, no
// more scenarios are simulated, and the results of the remaining scenarios are zero values.
func Runs[T any](ctx context.Context, n, processors int, scenario func(i int) Scenario,
	of func(i int, t *Trace) T) []T {
	all := make([]T, n)
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range max(1, min(n, processors)) {
		wg.Go(func() {
			for i := range numbers {
				if ctx.Err() != nil {
					continue
				}
				all[i] = of(i, Run(scenario(i)))
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	return all
}
