package provision

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// Transfers describes, by site name, how files are transferred to the sites of a cluster. Workers at other sites can
// access the directories of runs directly, or nothing is known about those sites.
type Transfers map[string]plan.Transfer

// LearnedTransfers returns the transfers to sites that a cluster's runs reported, and describes their basis. Latencies
// are averaged by jobs, bandwidths by bytes. A run whose files were so large that the latency could not be measured
// contributes only a bandwidth.
func LearnedTransfers(reports []*corral.RunReport) (known Transfers, learned []string) {
	type sum struct {
		latency     average
		runs        int
		bytes, took float64 // of runs that report a bandwidth
	}
	sums := map[string]*sum{}
	for _, r := range reports {
		if r == nil {
			continue
		}
		for _, t := range r.Transfers {
			s := sums[t.Site]
			if s == nil {
				s = &sum{}
				sums[t.Site] = s
			}
			if t.Jobs > 0 {
				s.runs++
			}
			if t.Latency > 0 || t.Bandwidth == 0 {
				s.latency.add(t.Latency, t.Jobs)
			}
			if t.Bandwidth > 0 {
				s.bytes, s.took = s.bytes+float64(t.Bytes), s.took+float64(t.Bytes)/t.Bandwidth
			}
		}
	}
	known = Transfers{}
	for _, site := range slices.Sorted(maps.Keys(sums)) {
		s := sums[site]
		t := plan.Transfer{}
		switch {
		case s.latency.tasks > 0:
			t.Latency = s.latency.mean()
		case s.took == 0:
			continue
		}
		rest := fmt.Sprintf("%s for each job", t.Latency)
		if s.took > 0 {
			t.Bandwidth = s.bytes / s.took
			rest += fmt.Sprintf(", and %s a second", plan.Bytes(t.Bandwidth))
		}
		known[site] = t
		learned = append(learned, fmt.Sprintf("files travel to site %s and back: %s, as learned from %s", site, rest,
			counted(s.runs, "run")))
	}
	return known, learned
}

// Carry applies the transfers to a problem.
func (t Transfers) Carry(p *plan.Problem) {
	for i := range p.Sites {
		p.Sites[i].Transfer = t[p.Sites[i].Name]
	}
	for i := range p.Present {
		p.Present[i].Transfer = t[p.Present[i].Site]
	}
}

// assumedTransfers returns the transfers with which a plan was made.
func assumedTransfers(document plan.Plan) Transfers {
	t := Transfers{}
	if a := document.Assumed; a != nil {
		for _, s := range a.Transfers {
			t[s.Site] = a.Transfer(s.Site)
		}
	}
	return t
}

// mattering is the minimum share of transfers in the time that tasks occupy workers at which transfers are mentioned.
const mattering = 0.01

// Travelling describes the share of transfers in the time that a plan's tasks occupy workers, if that share is large
// enough to matter.
func Travelling(work plan.Work, pl *plan.Plan) (said []string) {
	var bytes int64
	var took, all time.Duration
	bytesOf := make(map[string]int64, len(work.Tasks))
	for _, t := range work.Tasks {
		bytesOf[t.ID] = max(0, t.Bytes)
	}
	for _, at := range pl.Schedule {
		all += time.Duration(at.End - at.Start)
		if at.Transfer > 0 {
			took, bytes = took+time.Duration(at.Transfer), bytes+bytesOf[at.ID]
		}
	}
	if float64(took) < mattering*float64(all) || took == 0 {
		return nil
	}
	return []string{fmt.Sprintf("files of %s travel to workers and back: %.0f %% of the time that tasks have workers",
		plan.Bytes(float64(bytes)), 100*took.Seconds()/all.Seconds())}
}
