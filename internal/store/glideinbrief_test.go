package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// A glidein read in brief has its live attempts and those from the last decisive one on.
func TestGlideinInBrief(t *testing.T) {
	t.Parallel()
	const expired, lost, duplicate, running = corral.OutcomeExpired, corral.OutcomeLost, corral.OutcomeDuplicate, ""
	forever := resubmit.Policy{Mode: resubmit.Forever, Retries: 9}
	times := resubmit.Policy{Mode: resubmit.Times, Limit: 9, Retries: 9}
	w := newWorld(t)
	for _, tt := range []struct {
		name     string
		policy   resubmit.Policy
		outcomes []corral.Outcome
		want     []int // numbers of the attempts
		earlier  int   // number of expired attempts that are not read
	}{
		{"none yet", forever, nil, nil, 0},
		{"the first one runs", forever, []corral.Outcome{running}, []int{1}, 0},
		{"expired each time", forever, []corral.Outcome{expired, expired, expired, expired}, []int{4}, 0},
		{"expired each time, and counted", times, []corral.Outcome{expired, expired, expired, expired}, []int{4}, 3},
		{"and another runs", times, []corral.Outcome{expired, lost, expired, running}, []int{3, 4}, 1},
		{"lost after that", times, []corral.Outcome{expired, expired, lost, lost}, []int{2, 3, 4}, 1},
		{"lost from the beginning", forever, []corral.Outcome{lost, lost, lost}, []int{1, 2, 3}, 0},
		{"a duplicate decides nothing", forever, []corral.Outcome{expired, expired, duplicate}, []int{2, 3}, 0},
		{"one outlives its successors", forever, []corral.Outcome{expired, running, lost, expired}, []int{2, 4}, 0},
	} {
		g := w.newGlidein()
		g.Resubmit = tt.policy
		g = w.createGlidein(g)
		w.write(func(tx *store.Tx) error {
			for _, o := range tt.outcomes {
				life := []corral.JobEvent{submitted, started}
				if o != running {
					life = append(life, ended(o))
				}
				j, err := tx.CreateJob(newPilot(g))
				for _, e := range life {
					if err == nil {
						j, err = tx.MoveJob(j.ID, e)
					}
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		check := func(how string, got corral.Glidein) {
			t.Helper()
			var numbers []int
			for _, a := range got.Attempts {
				numbers = append(numbers, a.Number)
			}
			if !slices.Equal(numbers, tt.want) || got.EarlierExpired != tt.earlier {
				t.Errorf("%s, %s: attempts %v, and %d that expired earlier; want %v and %d", tt.name, how, numbers, got.EarlierExpired, tt.want, tt.earlier)
			}
		}
		w.view(func(tx *store.Tx) error {
			one, err := tx.GlideinInBrief(g.ID)
			check("alone", one)
			for _, f := range []store.GlideinFilter{{Site: g.Site}, {Cluster: g.Cluster}, {Filter: store.Filter{Page: store.Page{After: int64(g.ID) - 1, Limit: 1}}}} {
				f.Live, f.InBrief = true, true
				list, listed := tx.Glideins(f)
				if listed != nil {
					return listed
				}
				check(fmt.Sprintf("%+v", f), list[len(list)-1])
			}
			return err
		})
	}
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.GlideinInBrief(1 << 40); return err })
}
