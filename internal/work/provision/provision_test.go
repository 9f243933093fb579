package provision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

const (
	minute = corral.Seconds(time.Minute)
	hour   = 60 * minute
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// hpc returns a site with a batch system, whose default queue is normal.
func hpc() provision.Facts {
	return provision.Facts{Site: corral.Site{
		Name: "hpc", Batch: "slurm", State: corral.SiteReady,
		Facts: &corral.SiteFacts{Queues: []corral.SiteQueue{
			{Name: "normal", Default: true, MaxWalltime: 24 * hour, MaxNodes: 10, Nodes: 40, CPUs: 64, MemoryMiB: 512_000},
			{Name: "short", MaxWalltime: 10 * minute, Nodes: 40, CPUs: 64},
			{Name: "night", Closed: "only at night", Nodes: 40, CPUs: 64},
			{Name: "dark"}, // nothing is known about this queue
		}},
	}}
}

// here returns the machine on which corrald runs.
func here() provision.Facts {
	return provision.Facts{
		Site:    corral.Site{Name: "local", Batch: corral.ForkBatch, State: corral.SiteReady},
		Machine: corral.SiteQueue{CPUs: 8, MemoryMiB: 16_000},
	}
}

// normal returns a plan's view of hpc's default queue.
func normal() plan.Site {
	return plan.Site{
		Name: "hpc", Queue: "normal",
		Host:  corral.Resources{CPUs: 64, MemoryMiB: 512_000, DiskMiB: plan.Unlimited},
		Hosts: 10, Pilots: plan.Unlimited, CPUs: 40 * 64,
		Walltime: 24 * time.Hour, Margin: time.Minute, Overhead: 10 * time.Second, Tariff: plan.CoreHours,
	}
}

// short returns a plan's view of hpc's queue short.
func short() plan.Site {
	s := normal()
	s.Queue, s.Walltime, s.Margin, s.Hosts = "short", 10*time.Minute, 30*time.Second, 40
	s.Host.MemoryMiB = plan.Unlimited
	return s
}

func local() plan.Site {
	return plan.Site{
		Name: "local", Host: corral.Resources{CPUs: 8, MemoryMiB: 16_000, DiskMiB: plan.Unlimited},
		Nodes: oneNode(8, 16_000), Hosts: 8, Pilots: plan.Unlimited, CPUs: 8, Walltime: plan.Unbounded, Overhead: time.Second,
		Tariff: plan.CoreHours,
	}
}

func oneNode(cpus, memoryMiB int) []corral.NodeType {
	return []corral.NodeType{{Count: 1, Resources: corral.Resources{CPUs: cpus, MemoryMiB: memoryMiB,
		DiskMiB: plan.Unlimited}}}
}

// with returns a site whose model is s changed by edit.
func with(s plan.Site, edit func(*plan.Site)) []plan.Site {
	edit(&s)
	return []plan.Site{s}
}

// TestSites: a plan uses the known limits of the queues that its pilots may use, minus the current use.
func TestSites(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		of   func() provision.Facts
		edit func(*provision.Facts)
		want []plan.Site
	}{
		{"the default queue", hpc, func(*provision.Facts) {}, []plan.Site{normal()}},
		{"the machine", here, func(*provision.Facts) {}, []plan.Site{local()}},
		{"queues that are named", hpc, func(f *provision.Facts) { f.Site.Queue = "short,normal" },
			[]plan.Site{normal(), short()}},
		{"a closed queue", hpc, func(f *provision.Facts) { f.Site.Queue = "night" }, nil},
		{"a queue of unknown nodes", hpc, func(f *provision.Facts) { f.Site.Queue = "dark" }, nil},
		{"nothing is known yet", hpc, func(f *provision.Facts) { f.Site.Facts = nil }, nil},
		{"a site that is being staged", here, func(f *provision.Facts) { f.Site.State = corral.SiteStaging },
			[]plan.Site{local()}},
		{"a site that goes", here, func(f *provision.Facts) { f.Site.State = corral.SiteExiting }, nil},
		{"a site that failed", here, func(f *provision.Facts) { f.Site.State = corral.SiteFailed }, nil},
		{"a limit of its own", here, func(f *provision.Facts) { f.Site.Limits.MaxRunning = 3 },
			with(local(), func(s *plan.Site) { s.Pilots = 3 })},
		{"the least of the limits", hpc, func(f *provision.Facts) {
			f.Site.Limits.MaxQueued, f.Site.Facts.MaxJobs = 7, 5
		}, with(normal(), func(s *plan.Site) { s.Pilots = 5 })},
		{"pilots that run do not wait", here, func(f *provision.Facts) {
			f.Site.Limits.MaxQueued, f.Load = 3, corral.Load{Queued: 1, Running: 5}
		}, with(local(), func(s *plan.Site) { s.Pilots = 2 })},
		{"pilots that are there", here, func(f *provision.Facts) {
			f.Site.Limits.MaxRunning, f.Load = 5, corral.Load{Queued: 1, Running: 2}
		}, with(local(), func(s *plan.Site) { s.Pilots = 2 })},
		{"resources of the machine that others have", here, func(f *provision.Facts) {
			f.Held = corral.Resources{CPUs: 6, MemoryMiB: 15_000}
		}, with(local(), func(s *plan.Site) { s.CPUs, s.Nodes = 2, oneNode(2, 1000) })},
		{"more of them than there are", here, func(f *provision.Facts) { f.Held.CPUs = 9 },
			with(local(), func(s *plan.Site) { s.CPUs, s.Nodes = 0, oneNode(0, 16_000) })},
		{"nodes of two types", hpc, func(f *provision.Facts) {
			f.Site.Facts.Queues[0].NodeTypes = []corral.NodeType{{Count: 2, Resources: corral.Resources{CPUs: 4}},
				{Count: 3, Resources: corral.Resources{CPUs: 16, MemoryMiB: 100, GPUs: 1, DiskMiB: 7}}}
		}, with(normal(), func(s *plan.Site) {
			s.CPUs, s.Nodes = 56, []corral.NodeType{
				{Count: 2, Resources: corral.Resources{CPUs: 4, MemoryMiB: plan.Unlimited, DiskMiB: plan.Unlimited}},
				{Count: 3, Resources: corral.Resources{CPUs: 16, MemoryMiB: 100, GPUs: 1, DiskMiB: 7}}}
		})},
		{"a batch system says itself what is free", hpc, func(f *provision.Facts) { f.Held.CPUs = 6 },
			[]plan.Site{normal()}},
		{"a price and a balance", here, func(f *provision.Facts) {
			f.Site.SiteTerms = corral.SiteTerms{Price: "0.5USD/host-hour", Billing: "1h"}
			f.Ledger = cost.Ledger{Unit: "USD", Balance: ptr(cost.Money(7))}
		}, with(local(), func(s *plan.Site) {
			s.Tariff.Rate = cost.Rate{Price: 500_000, Unit: "USD", Per: cost.HostHour}
			s.Tariff.Billing.Period, s.Left = time.Hour, ptr(cost.Money(7))
		})},
		{"maintenance of all nodes", hpc, func(f *provision.Facts) {
			f.Site.Facts.Maintenance = []corral.Maintenance{
				{Name: "over", Queue: "normal", Nodes: 40, From: now.Add(-2 * time.Hour), To: now.Add(-time.Hour)},
				{Name: "now", Queue: "normal", Nodes: 40, From: now.Add(-time.Hour), To: now.Add(time.Hour)},
				{Name: "later", Queue: "normal", Nodes: 40, From: now.Add(5 * time.Hour), To: now.Add(6 * time.Hour)},
				{Name: "some", Queue: "normal", Nodes: 39, From: now.Add(7 * time.Hour), To: now.Add(8 * time.Hour)},
				{Name: "other", Queue: "short", Nodes: 40, From: now.Add(7 * time.Hour), To: now.Add(8 * time.Hour)},
			}
		}, with(normal(), func(s *plan.Site) { // 12 minutes earlier: the margin, and the amount by which a walltime is longer
			s.Closed = []plan.Span{{From: 0, To: time.Hour + time.Millisecond},
				{From: 5*time.Hour - 12*time.Minute, To: 6*time.Hour + time.Millisecond}}
		})},
		{"more of them than are allowed", here, func(f *provision.Facts) {
			f.Site.Limits.MaxRunning, f.Load = 2, corral.Load{Running: 3}
		}, with(local(), func(s *plan.Site) { s.Pilots = 0 })},
	} {
		f := tc.of()
		tc.edit(&f)
		got, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
		for i := range got {
			got[i].Wait = nil // see TestWaits
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestAhead: a plan's reasons contain the maintenance and allowance of the queues that the plan may use, and which of
// these the site does not report.
func TestAhead(t *testing.T) {
	t.Parallel()
	f := hpc()
	f.Waits = []corral.Wait{waited("normal", 4, minute)}
	f.Site.Facts.At = now
	f.Site.Facts.Maintenance = []corral.Maintenance{
		{Name: "all", Queue: "normal", Nodes: 40, From: now.Add(time.Hour), To: now.Add(2 * time.Hour)},
		{Name: "some", Queue: "normal", Nodes: 3, From: now.Add(time.Hour), To: now.Add(2 * time.Hour)},
		{Name: "other", Queue: "short", Nodes: 40, From: now.Add(time.Hour), To: now.Add(2 * time.Hour)},
	}
	f.Site.Facts.Allowance = &corral.Allowance{Account: "phys", CPUMinutes: 6000, Used: 600}
	f.Site.Facts.Notes = []string{"the account's remaining allowance is not known: PrivateData hides usage", "the quota is not known"}
	_, got := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
	const span = "from 2026-11-20T13:00:00Z to 2026-11-20T14:00:00Z: "
	want := []string{
		"queue normal at site hpc has maintenance all " + span + "no pilot is planned across it",
		"queue normal at site hpc has maintenance some " + span + "3 of 40 nodes; the plan uses the others as if they were all",
		"account phys at site hpc had 90 of 100 cpu-hours left on 2026-11-20T12:00:00Z",
		"site hpc: the account's remaining allowance is not known: PrivateData hides usage; the prediction uses only its waits",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// waited returns an attempt with the given number of cpus that waited for the given time.
func waited(queue string, cpus int, wait corral.Seconds) corral.Wait {
	begin := now.Add(-24 * time.Hour)
	return corral.Wait{Site: "hpc", Queue: queue, Hosts: 1, CPUs: cpus, Walltime: hour, SubmittedAt: begin,
		StartedAt: begin.Add(time.Duration(wait)), EndedAt: now, Outcome: corral.OutcomeDone}
}

// TestWaits: a plan assumes the waits of attempts with a similar shape in the same queue or, if there are none, of all
// attempts in the queue.
func TestWaits(t *testing.T) {
	t.Parallel()
	f := hpc()
	f.Waits = []corral.Wait{
		waited("normal", 4, minute), waited("normal", 4, 2*minute), waited("normal", 4, 3*minute),
		waited("normal", 64, 2*hour), waited("short", 4, 0),
	}
	for _, tc := range []struct {
		cpus  int
		share float64
		want  corral.Seconds
	}{
		{4, 0.5, 2 * minute},
		{8, 0.5, 2 * minute}, // at most twice as many
		{2, 0.5, 2 * minute}, // at least half as many
		{4, 0.9, 3 * minute},
		{64, 0.5, 2 * hour},
		{16, 0.9, 2 * hour}, // no attempt is similar
	} {
		sites, assumed := provision.Sites([]provision.Facts{f}, provision.Caution{Share: tc.share}, now)
		shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: tc.cpus}, Walltime: time.Hour}
		if got := corral.Seconds(sites[0].Wait(shape)); got != tc.want || len(assumed) != 0 {
			t.Errorf("%d cpus wait %s with %v (assumed: %q), want %s", tc.cpus, got, tc.share, assumed, tc.want)
		}
	}
}

// TestWaitsOfWalltimes: batch systems backfill short jobs, so a class of walltimes with enough waits is judged by itself,
// and any other by the waits of all classes.
func TestWaitsOfWalltimes(t *testing.T) {
	t.Parallel()
	f := hpc()
	add := func(n int, walltime, wait corral.Seconds) {
		for range n {
			w := waited("normal", 4, wait)
			w.Walltime = walltime
			f.Waits = append(f.Waits, w)
		}
	}
	add(20, 15*minute, minute)
	add(30, 5*hour, 2*hour)
	add(3, 2*hour, 10*minute)
	sites, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
	for walltime, want := range map[corral.Seconds]corral.Seconds{
		10 * minute: minute, 15 * minute: minute, 16 * minute: 2 * hour, 2 * hour: 2 * hour, 5 * hour: 2 * hour,
	} {
		shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 4}, Walltime: time.Duration(walltime)}
		if got := corral.Seconds(sites[0].Wait(shape)); got != want {
			t.Errorf("a pilot for %s waits %s, want %s", walltime, got, want)
		}
	}
	pilot := func(walltime corral.Seconds) plan.Pilot {
		return plan.Pilot{Site: sites[0].Name, Queue: sites[0].Queue, Shape: corral.Shape{Hosts: 1, CPUs: 4, Walltime: walltime}}
	}
	pl := &plan.Plan{Pilots: []plan.Pilot{pilot(6 * hour), pilot(10 * minute), pilot(12 * minute)}}
	var copied plan.Site
	copied.Name, copied.Queue = sites[0].Name, sites[0].Queue
	plan.Assume(plan.Problem{Sites: sites}, pl, "0").Expect(&copied)
	for _, q := range pl.Pilots {
		shape := copied.ShapeOf(q)
		if got, want := copied.Wait(shape), sites[0].Wait(shape); got != want || copied.Quantile(shape, 0.9) != sites[0].Quantile(shape, 0.9) {
			t.Errorf("the plan records that a pilot for %s waits %s, want %s", q.Walltime, got, want)
		}
	}
}

// TestWaitsOfAConfidence (F7C): a plan that promises a confidence assumes the bound of a quantile, any other plan the
// estimate of the quantile. If there are too few waits of a similar shape for a bound, all waits of the queue are used.
// If these are also too few, the longest wait is used, and a reason mentions this.
func TestWaitsOfAConfidence(t *testing.T) {
	t.Parallel()
	sure := plan.Goal{Objective: plan.Cost, Deadline: 24 * hour, Confidence: 0.5}
	many := func(queue string, cpus, n int) (all []corral.Wait) {
		for i := range n {
			all = append(all, waited(queue, cpus, corral.Seconds(1+i)*minute))
		}
		return all
	}
	half := many("normal", 4, 120) // every other attempt never started
	for i := range half {
		if i%2 == 1 {
			half[i].EndedAt, half[i].StartedAt, half[i].Outcome = half[i].StartedAt, time.Time{}, corral.OutcomeRemoved
		}
	}
	few := func(what string) string {
		return what + " at site hpc: a bound that a share of 0.5 does not exceed needs 100; " +
			"the longest observed wait is used instead"
	}
	for _, tc := range []struct {
		name  string
		waits []corral.Wait
		goal  plan.Goal
		want  corral.Seconds
		said  string
	}{
		{"an estimate", many("normal", 4, 200), plan.Goal{}, 100 * minute, ""},
		{"a bound", many("normal", 4, 200), sure, 180 * minute, ""},
		{"too few for a bound", many("normal", 4, 99), sure, 99 * minute, few("99 waits ended with a start in queue normal")},
		{"an estimate of the only one of like shape", append(many("normal", 64, 200), waited("normal", 4, minute)),
			plan.Goal{}, minute, ""},
		{"too few of like shape", append(many("normal", 64, 199), waited("normal", 4, minute)), sure, 179 * minute, ""},
		{"enough in another queue", append(many("short", 4, 200), many("normal", 4, 7)...), sure, 7 * minute,
			few("7 waits ended with a start in queue normal")},
		{"enough, but in another queue", many("short", 4, 200), sure, 180 * minute, ""},
		{"enough if all had started", half, sure, 120 * minute, few("60 waits ended with a start in queue normal")},
	} {
		f := hpc()
		f.Waits = tc.waits
		sites, said := provision.Sites([]provision.Facts{f}, provision.CautionOf(tc.goal, 0.5), now)
		shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 4}, Walltime: time.Hour}
		if got := corral.Seconds(sites[0].Wait(shape)); got != tc.want || strings.Join(said, "\n") != tc.said {
			t.Errorf("%s: %s and %q, want %s and %q", tc.name, got, said, tc.want, tc.said)
		}
		if tc.want > 0 && corral.Seconds(sites[0].Quantile(shape, 0.5)) != tc.want {
			t.Errorf("%s: outcomes have a median of %s, want %s", tc.name, sites[0].Quantile(shape, 0.5), tc.want)
		}
	}
}

// TestBoundsAscend: the bound of a larger quantile is based on more waits, which may be shorter. The bound is not
// shorter nevertheless, and the planned value is the bound of its own quantile.
func TestBoundsAscend(t *testing.T) {
	t.Parallel()
	f := hpc()
	f.Waits = []corral.Wait{waited("normal", 4, 2*hour)}
	for range 2000 {
		f.Waits = append(f.Waits, waited("normal", 4, minute))
	}
	for range 20 {
		f.Waits = append(f.Waits, waited("normal", 4, hour))
	}
	sites, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5, Bound: true}, now)
	shape := plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 4}, Walltime: time.Hour}
	if got := sites[0].Wait(shape); got != time.Minute {
		t.Errorf("planned with %s, want the 9th of 10 among the latest 200: a minute", got)
	}
	shorter := time.Duration(0)
	for share := 0.0; share <= 1; share += 1. / 64 {
		got := sites[0].Quantile(shape, share)
		if got < shorter {
			t.Errorf("a share of %g does not exceed %s, and a smaller one %s", share, got, shorter)
		}
		shorter = got
	}
}

// TestPriorWaits: in a queue in which no pilot has run, the waits at other sites or the state of the queue is assumed,
// and the plan says so.
func TestPriorWaits(t *testing.T) {
	t.Parallel()
	standing := provision.StandingOf(corral.Backlog{Processors: 8, At: now,
		Running: []corral.QueuedJob{{Processors: 6, Limit: corral.Seconds(2 * time.Hour), Elapsed: corral.Seconds(time.Hour)}},
		Waiting: []corral.QueuedJob{{Processors: 8, Limit: corral.Seconds(3 * time.Hour)}}})
	shape := func(cpus int) plan.Shape {
		return plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: cpus}, Walltime: 30 * time.Minute}
	}
	for _, tc := range []struct {
		name   string
		change func(*provision.Facts)
		waits  [2]time.Duration // of 2 and 4 cpus
		said   string
	}{
		{"nothing", func(*provision.Facts) {}, [2]time.Duration{}, "its queue cannot be seen either: none is assumed, and a confidence leaves it out"},
		{"the queue", func(f *provision.Facts) { f.Stands = map[string]provision.Standing{"normal": standing} },
			[2]time.Duration{0, 4 * time.Hour}, "assumed from the queue, with 1 running and 1 waiting jobs"},
		{"other sites before the queue", func(f *provision.Facts) {
			f.Stands = map[string]provision.Standing{"normal": standing}
			for _, site := range []string{"hpc3", "hpc2", "hpc3"} {
				w := waited("long", 4, 10*minute)
				w.Site = site
				f.Others = append(f.Others, w)
			}
		}, [2]time.Duration{10 * time.Minute, 10 * time.Minute}, "assumed from 3 waits at hpc2, hpc3"},
	} {
		f := hpc()
		tc.change(&f)
		sites, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
		said := provision.Priors([]provision.Facts{f})
		got := [2]time.Duration{sites[0].Wait(shape(2)), sites[0].Wait(shape(4))}
		if want := "wait in queue normal at hpc: no pilot has run there; " + tc.said; len(said) != 1 || said[0] != want {
			t.Errorf("%s: %q, want %q", tc.name, said, want)
		}
		if got != tc.waits {
			t.Errorf("%s: waits of %s, want %s", tc.name, got, tc.waits)
		}
	}
}

// TestUnknownWaits: without any evidence no wait is assumed, which a plan says, but not of a site where pilots never wait.
func TestUnknownWaits(t *testing.T) {
	t.Parallel()
	gone := hpc()
	gone.Site.Name, gone.Site.State = "gone", corral.SiteExiting
	facts := []provision.Facts{here(), hpc(), gone}
	sites, _ := provision.Sites(facts, provision.Caution{Share: 0.5}, now)
	if assumed := provision.Priors(facts); len(assumed) != 1 || !strings.HasPrefix(assumed[0], "wait in queue normal at hpc: ") {
		t.Errorf("assumed: %q", assumed)
	}
	for _, s := range sites {
		if got := s.Wait(plan.Shape{Hosts: 1, Host: corral.Resources{CPUs: 1}}); got != 0 {
			t.Errorf("%s waits %s", s.Name, got)
		}
	}
}

// pair returns a workflow of two tasks, of which the second may have no estimate.
func pair(t *testing.T, second time.Duration) *workflow.Workflow {
	t.Helper()
	w := &workflow.Workflow{}
	w.Name = "pair"
	w.Tasks = []workflow.Task{
		{ID: "a", Name: "align", Estimate: 90*time.Second + 400*time.Microsecond,
			Resources: corral.Resources{CPUs: 2, MemoryMiB: 100, GPUs: 1, DiskMiB: 500}},
		{ID: "b", Name: "merge", Estimate: second, Resources: corral.Resources{CPUs: 1}},
	}
	var err error
	if w.Graph, err = dag.New(2, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWork: a task is planned with its estimate in whole milliseconds, and a task without an estimate with the
// fallback.
func TestWork(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ estimate, fallback, want time.Duration }{
		{time.Minute, 0, time.Minute}, {time.Minute, time.Second, time.Minute}, {0, time.Second, time.Second},
	} {
		work, _, err := provision.Work(pair(t, tc.estimate), provision.Experience{Fallback: tc.fallback})
		want := plan.Work{Name: "pair", Tasks: []plan.Task{
			{ID: "a", Kind: "align", Runtime: 90 * time.Second, Needs: corral.Resources{CPUs: 2, MemoryMiB: 100, GPUs: 1, DiskMiB: 500}},
			{ID: "b", Kind: "merge", Runtime: tc.want, Needs: corral.Resources{CPUs: 1}},
		}}
		work.Graph = nil
		if diff := cmp.Diff(want, work); diff != "" || err != nil {
			t.Errorf("estimate %s, fallback %s: %v (-want +got):\n%s", tc.estimate, tc.fallback, err, diff)
		}
	}
	fast := pair(t, 0)
	fast.Tasks[1].Execution = workflow.Execution{Worker: "n1"}
	if work, _, err := provision.Work(fast, provision.Experience{Fallback: time.Minute}); err != nil || work.Tasks[1].Runtime != 0 {
		t.Errorf("too fast for the clock: %+v, %v, want a runtime of 0", work.Tasks[1], err)
	}
	_, _, err := provision.Work(pair(t, 0), provision.Experience{})
	if p := api.ProblemOf(err); err == nil || p.Kind != corral.Unsatisfiable || p.Place != "task b" ||
		!strings.Contains(p.Detail, "1 task of kind merge: ") || !strings.Contains(p.Detail, "--default-runtime") {
		t.Errorf("without an estimate: %v, want it to name task b, its kind and --default-runtime", err)
	}
}

// TestCluster: HTCondor takes longer from one task to the next than the embedded dispatcher, and starts fewer tasks per
// second.
func TestCluster(t *testing.T) {
	t.Parallel()
	embedded, condor := provision.Cluster(corral.Embedded, false), provision.Cluster(corral.Condor, false)
	if embedded.Hop <= 0 || condor.Hop <= embedded.Hop || condor.Rate <= 0 || embedded.Rate <= condor.Rate {
		t.Errorf("embedded %+v, condor %+v", embedded, condor)
	}
}

// TestGlideins: a pilot is converted to a request with the same properties; the request for a pilot that is not due at
// once includes its time.
func TestGlideins(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Pilots: []plan.Pilot{
		{Site: "local", Shape: corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: 100, Walltime: hour}},
		{Site: "hpc", Queue: "short",
			Shape:  corral.Shape{Hosts: 3, CPUs: 8, GPUs: 1, Walltime: 10 * minute},
			Submit: minute / 2, Start: minute},
	}}
	row := corral.Plan{ID: 7, ClusterName: "mine", BeganAt: now}
	want := []api.NewGlidein{
		{Site: "local", Cluster: "mine",
			Shape:  corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: 100, Walltime: hour},
			Idle:   minute,
			Labels: map[string]string{"plan": "7", "pilot": "0"}},
		{Site: "hpc", Cluster: "mine",
			Shape:        corral.Shape{Hosts: 3, CPUs: 8, GPUs: 1, Walltime: 10 * minute},
			Idle:         minute,
			BatchOptions: corral.BatchOptions{Queue: "short"}, NotBefore: now.Add(30 * time.Second),
			Labels: map[string]string{"plan": "7", "pilot": "1"}},
	}
	if diff := cmp.Diff(want, provision.Requests(row, p.Pilots, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := provision.Requests(row, nil, 0); len(got) != 0 {
		t.Errorf("a plan without pilots asks for %v", got)
	}
}

// TestMachineBehindSSHIsNotAQueue: pilots of a site without a batch system name no queue, whatever its machine is
// called.
func TestMachineBehindSSHIsNotAQueue(t *testing.T) {
	t.Parallel()
	f := provision.Facts{Site: corral.Site{Name: "far", Batch: corral.ForkBatch, State: corral.SiteReady},
		Machine: corral.SiteQueue{Name: "node7", CPUs: 4}}
	sites, _ := provision.Sites([]provision.Facts{f}, provision.Caution{Share: 0.5}, now)
	if len(sites) != 1 || sites[0].Queue != "" || sites[0].CPUs != 4 {
		t.Errorf("%+v, want one machine of 4 cpus, and no queue that a pilot could name", sites)
	}
}
