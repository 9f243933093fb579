package forecast_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/profile"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// work returns parallel tasks of an hour each.
func work(t testing.TB, n int, needs corral.Resources) plan.Work {
	t.Helper()
	w := plan.Work{Name: "w"}
	for range n {
		w.Tasks = append(w.Tasks, plan.Task{ID: "t", Needs: needs, Runtime: time.Hour})
	}
	var err error
	if w.Graph, err = dag.New(n, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func site(name, price string, wait time.Duration, change func(*forecast.RankedSite)) forecast.RankedSite {
	s := forecast.RankedSite{Site: corral.Site{Name: name, State: corral.SiteReady}}
	s.Price = price
	s.Facts = &corral.SiteFacts{Queues: []corral.SiteQueue{{Name: "normal", Default: true, Nodes: 10, CPUs: 16, MemoryMiB: 32768,
		MaxWalltime: corral.Seconds(24 * time.Hour)}}}
	if wait > 0 {
		s.Waits = []corral.Wait{{Queue: "normal", Hosts: 1, CPUs: 16, Walltime: corral.Seconds(time.Hour),
			SubmittedAt: noon.Add(-2 * wait), StartedAt: noon.Add(-wait)}}
	}
	if change != nil {
		change(&s)
	}
	return s
}

// Of two otherwise equal sites, the faster one according to learned speeds is better; a task may exceed the walltime at
// the slower site.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	speed := func(factor float64) func(*forecast.RankedSite) {
		return func(s *forecast.RankedSite) { s.Speed = profile.Speed{Factor: factor, Shared: 3} }
	}
	sites := []forecast.RankedSite{
		site("a-slow", "", time.Hour, speed(0.5)), site("b-unknown", "", time.Hour, nil), site("c-fast", "", time.Hour, speed(2)),
		site("d-tiny", "", time.Hour, func(s *forecast.RankedSite) { speed(0.01)(s) }),
	}
	ranks, err := forecast.RankSites(forecast.RankRequest{Work: work(t, 16, corral.Resources{CPUs: 1}), CPUs: 16, By: forecast.ByTime}, sites, noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c-fast", "b-unknown", "a-slow", "d-tiny"}, names(ranks)); diff != "" {
		t.Error(diff)
	}
	for i, want := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if r := ranks[i]; time.Duration(r.Takes) != want || !r.Viable || r.Kinds != []int{3, 0, 3}[i] {
			t.Errorf("%+v, want it to take %s", r, want)
		}
	}
	if r := ranks[3]; r.Viable || !strings.Contains(r.Lacks, "a task takes 100h") {
		t.Errorf("%+v", r)
	}
}

func names(ranks []forecast.Rank) (all []string) {
	for _, r := range ranks {
		all = append(all, r.Site)
	}
	return all
}

// The site with the earliest completion is not the cheapest. A site without observed waits is assumed to have the
// longest wait of the other sites.
func TestOrder(t *testing.T) {
	t.Parallel()
	sites := []forecast.RankedSite{
		site("slow", "0.01USD/cpu-hour", 8*time.Hour, nil),
		site("fast", "0.05USD/cpu-hour", time.Hour, nil),
		site("new", "0.03USD/cpu-hour", 0, nil),
	}
	for by, want := range map[forecast.RankBy][]string{forecast.ByTime: {"fast", "new", "slow"}, forecast.ByCost: {"slow", "new", "fast"}} {
		got, err := forecast.RankSites(forecast.RankRequest{Work: work(t, 32, corral.Resources{CPUs: 1}), CPUs: 16, By: by}, sites, noon)
		if diff := cmp.Diff(want, names(got)); err != nil || diff != "" {
			t.Errorf("by %s: %v (-want +got):\n%s", by, err, diff)
		}
		for _, r := range got {
			if r.Takes != corral.Seconds(2*time.Hour) || !r.Viable || r.Cost == nil || len(r.Items) != 1 {
				t.Errorf("by %s: %+v", by, r)
			}
			if r.Site == "new" && (r.Wait.Source != queueing.SourceGuess || r.Wait.Wait != corral.Seconds(8*time.Hour)) {
				t.Errorf("the wait at a new site: %+v", r.Wait)
			}
		}
	}
}

// A price with weights bills the memory that goes with the cpus and, if tasks need GPUs, these.
func TestWeighedResourcesAreBilled(t *testing.T) {
	t.Parallel()
	at := site("a", "1ch/sum(cpu=1,mem=0.5,gpu=8)-hour", 0, func(s *forecast.RankedSite) { s.Facts.Queues[0].GPUs = 4 })
	for gpus, want := range map[int]cost.Money{0: 16_000_000, 1: 32_000_000} { // of 8 cpus, 16 GiB and 2 gpus for an hour
		got, err := forecast.RankSites(forecast.RankRequest{Work: work(t, 8, corral.Resources{CPUs: 1, GPUs: gpus}), CPUs: 8,
			By: forecast.ByCost}, []forecast.RankedSite{at}, noon)
		if err != nil || got[0].Cost == nil || got[0].Cost.Money != want {
			t.Errorf("with %d gpus: %+v, %v; want %s", gpus, got, err, want)
		}
	}
}

// A site that is not viable is listed last, with the first requirement that it does not meet.
func TestLacks(t *testing.T) {
	t.Parallel()
	queue := func(change func(*corral.SiteQueue)) func(*forecast.RankedSite) {
		return func(s *forecast.RankedSite) { change(&s.Facts.Queues[0]) }
	}
	for want, c := range map[string]struct {
		change func(*forecast.RankedSite)
		cpus   int
	}{
		"the site: it is FAILED":                                    {func(s *forecast.RankedSite) { s.State = corral.SiteFailed }, 8},
		"the site: site it is unreachable: no route":                {func(s *forecast.RankedSite) { s.Trouble.Why = "no route" }, 8},
		`the queue: there is no "gone"`:                             {func(s *forecast.RankedSite) { s.Queue = "gone" }, 8},
		"the queue: it drains":                                      {queue(func(q *corral.SiteQueue) { q.Closed = "it drains" }), 8},
		"cpus: a task needs 4, and the largest node has 2":          {queue(func(q *corral.SiteQueue) { q.CPUs = 2 }), 8},
		"memory: a task needs 1024 MiB, and the largest node has 9": {queue(func(q *corral.SiteQueue) { q.MemoryMiB = 9 }), 8},
		"cpus: 1000 are requested, and the queue has 160":           {nil, 1000},
		"gpus: a task needs 1, and the largest node has 0":          {nil, 8},
		"walltime: a task takes 1h0m0s, and queue normal ends jobs after 30m0s": {
			queue(func(q *corral.SiteQueue) { q.MaxWalltime, q.GPUs = corral.Seconds(30*time.Minute), 1 }), 8},
	} {
		needs := corral.Resources{CPUs: 4, MemoryMiB: 1024, GPUs: 1}
		good := site("a", "", time.Hour, queue(func(q *corral.SiteQueue) { q.GPUs, q.Nodes = 1, 1000 }))
		got, err := forecast.RankSites(forecast.RankRequest{Work: work(t, 4, needs), CPUs: c.cpus, By: forecast.ByTime},
			[]forecast.RankedSite{site("it", "", time.Hour, c.change), good}, noon)
		if err != nil || got[0].Site != "a" || got[1].Viable || got[1].Lacks != want {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	w := work(t, 1, corral.Resources{CPUs: 1})
	for want, in := range map[string]forecast.RankRequest{"--cpus": {Work: w, By: forecast.ByTime}, "--by": {Work: w, CPUs: 1, By: "luck"}} {
		if _, err := forecast.RankSites(in, nil, noon); corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	wide := work(t, 1, corral.Resources{CPUs: 8})
	if _, err := forecast.RankSites(forecast.RankRequest{Work: wide, CPUs: 2, By: forecast.ByTime}, nil, noon); corral.KindOf(err) != corral.Invalid {
		t.Errorf("fewer cpus than a task needs: %v", err)
	}
	byCost := forecast.RankRequest{Work: w, CPUs: 1, By: forecast.ByCost}
	hosts := site("b", "1USD/host-hour", 0, func(s *forecast.RankedSite) { s.Facts = nil })
	for name, sites := range map[string][]forecast.RankedSite{
		"two units":         {site("a", "", 0, nil), site("b", "1USD/cpu-hour", 0, nil)},
		"hosts of any size": {site("a", "2USD/cpu-hour", 0, nil), hosts},
	} {
		if _, err := forecast.RankSites(byCost, sites, noon); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := forecast.RankSites(forecast.RankRequest{Work: w, CPUs: 1, By: forecast.ByTime}, []forecast.RankedSite{hosts}, noon); err != nil || !got[0].Viable || got[0].Cost != nil {
		t.Errorf("hosts of any size: %+v, %v", got, err)
	}
	if got, err := forecast.RankSites(forecast.RankRequest{Work: w, CPUs: 1, By: forecast.ByTime}, nil, noon); len(got) != 0 || err != nil {
		t.Errorf("of no sites: %v, %v", got, err)
	}
}

// A site whose pilots did not wait last week is behind an idle one while 1,976 jobs wait in its queue, which also shows
// where a pilot never starts.
func TestRankByTheQueueNow(t *testing.T) {
	t.Parallel()
	line := func(nodes, waiting int) func(*forecast.RankedSite) {
		b := corral.Backlog{Queue: "normal", At: noon, Processors: 16 * nodes}
		for k := range nodes {
			b.Nodes = append(b.Nodes, corral.QueueNode{Name: fmt.Sprint("n", k), CPUs: 16, MemoryMiB: 32768, Queues: []string{"normal"}})
		}
		for range waiting {
			b.Waiting = append(b.Waiting, corral.QueuedJob{Processors: 16, Nodes: 1, Limit: corral.Seconds(time.Hour)})
		}
		return func(s *forecast.RankedSite) { s.Line = queuemodel.Of(b) }
	}
	ranks, err := forecast.RankSites(forecast.RankRequest{Work: work(t, 32, corral.Resources{}), CPUs: 32, By: forecast.ByTime},
		[]forecast.RankedSite{site("hpca", "", time.Second, line(8, 1976)), site("hpcb", "", time.Hour, line(8, 0)),
			site("small", "", time.Second, line(1, 0))}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if r := ranks[0]; r.Site != "hpcb" || r.Wait.Wait != 0 || r.Wait.Source != forecast.SourceLine {
		t.Errorf("first is %+v", r)
	}
	if r := ranks[1]; r.Site != "hpca" || time.Duration(r.Wait.Wait) != 247*time.Hour {
		t.Errorf("second is %+v", r)
	}
	if r := ranks[2]; r.Viable || r.Lacks == "" {
		t.Errorf("last is %+v", r)
	}
}
