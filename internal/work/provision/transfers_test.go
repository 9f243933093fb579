package provision_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// way returns a run's report of the transfers to a site.
func way(site string, jobs int, latency time.Duration, bytes int64, bandwidth float64) *corral.RunReport {
	return &corral.RunReport{Transfers: []corral.SiteTransfer{{Site: site, Jobs: jobs, Bytes: bytes,
		Latency: corral.Seconds(latency), Bandwidth: bandwidth}}}
}

// TestLearnedTransfers: latencies of several runs are weighted by jobs, and bandwidths by bytes; a run with small files
// provides no bandwidth, and a run with large files no latency.
func TestLearnedTransfers(t *testing.T) {
	t.Parallel()
	known, said := provision.LearnedTransfers([]*corral.RunReport{
		nil, {}, way("far", 30, 100*time.Millisecond, 1<<30, 1<<20), way("far", 10, 500*time.Millisecond, 1<<30, 3<<20),
		way("far", 40, 200*time.Millisecond, 4000, 0), way("near", 1, 40*time.Millisecond, 10, 0),
		way("far", 1000, 0, 3<<29, 3<<19), way("wide", 5, 0, 1<<30, 1<<20)})
	want := provision.Transfers{"far": {Latency: 200 * time.Millisecond, Bandwidth: 1.5 * (1 << 20)},
		"near": {Latency: 40 * time.Millisecond}, "wide": {Bandwidth: 1 << 20}}
	if far := known["far"]; math.Abs(far.Bandwidth/want["far"].Bandwidth-1) < 1e-9 { // the sum of parts is inexact
		known["far"] = plan.Transfer{Latency: far.Latency, Bandwidth: want["far"].Bandwidth}
	}
	if len(known) != 3 || known["wide"] != want["wide"] || known["far"] != want["far"] || known["near"] != want["near"] || len(said) != 3 ||
		!strings.Contains(said[0], "site far and back: 200ms for each job, and 1.5 MiB a second, as learned from 4 runs") ||
		!strings.Contains(said[1], "site near and back: 40ms for each job, as learned from 1 run") {
		t.Errorf("%+v, %q, want %+v", known, said, want)
	}
	problem := plan.Problem{Sites: []plan.Site{{Name: "far"}, {Name: "here"}}, Present: []plan.Present{{Site: "near"}}}
	known.Carry(&problem)
	if problem.Sites[0].Transfer != want["far"] || problem.Sites[1].Transfer != (plan.Transfer{}) ||
		problem.Present[0].Transfer != want["near"] {
		t.Errorf("%+v, want those of the sites", problem)
	}
}

// TestTravellingIsReportedIfItMatters: a plan states how much time transfers take from tasks.
func TestTravellingIsReportedIfItMatters(t *testing.T) {
	t.Parallel()
	work := plan.Work{Tasks: []plan.Task{{ID: "a", Bytes: 3 << 30}, {ID: "b", Bytes: 1 << 30}, {ID: "c", Bytes: plan.Here}}}
	second := corral.Seconds(time.Second)
	for took, want := range map[corral.Seconds]string{
		0: "", second / 10: "", 10 * second: "files of 4 GiB travel to workers and back: 20 % of the time that tasks have",
	} {
		pl := &plan.Plan{Schedule: []plan.Placement{{ID: "a", End: 50 * second, Transfer: took},
			{ID: "b", End: 25 * second, Transfer: took / 2}, {ID: "c", End: 0}}}
		if said := strings.Join(provision.Travelling(work, pl), ";"); (said == "") != (want == "") ||
			!strings.HasPrefix(said, want) {
			t.Errorf("%s: %q, want %q", took, said, want)
		}
	}
}
