package provision

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// TestBefore: decisions wait for the effects of an earlier decision, but not if that decision only released idle
// pilots.
func TestBefore(t *testing.T) {
	t.Parallel()
	drop := func(whys ...revision.Why) (r corral.Revision) {
		for _, w := range whys {
			r.Dropped = append(r.Dropped, corral.PilotChange{Why: string(w), Ask: corral.AskDrain})
		}
		return r
	}
	add := corral.Revision{RevisionText: corral.RevisionText{Added: make([]corral.PilotChange, 1)}}
	began := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		said corral.Revision
		want time.Duration
	}{
		"pilots added":          {add, time.Minute},
		"an idle pilot let go":  {drop(revision.Workless), 0},
		"idle ones and others":  {drop(revision.Workless, revision.Unneeded), time.Minute},
		"for its walltime":      {drop(revision.Walltime), time.Minute},
		"news without a change": {corral.Revision{}, 0},
	} {
		tc.said.At = began.Add(time.Minute)
		s := sight{underway: underway{plan: corral.Plan{BeganAt: began}}, revisions: []corral.Revision{tc.said}}
		if got := s.before().At; got != tc.want {
			t.Errorf("%s: the last change was after %s, want %s", name, got, tc.want)
		}
	}
}
