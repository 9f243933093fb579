package provision

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/store/worldstate"
	"github.com/corral-pilot/corral/plan"
)

// Pilots of a plan that take over from each other are requested as glideins that follow each other. If the first starts
// two hours earlier than planned, the second is wanted two hours earlier, and a revision takes this into account.
func TestPilotsOfAPlanFollowEachOther(t *testing.T) {
	t.Parallel()
	s := newScene(t, inTime, true)
	const day = corral.Seconds(24 * time.Hour)
	first := 0
	one := plan.Pilot{Site: "local",
		Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: day},
		Start: corral.Seconds(2 * time.Hour), End: corral.Seconds(26 * time.Hour)}
	two := one
	two.Submit, two.Start, two.End = corral.Seconds(24*time.Hour), one.End-corral.Seconds(time.Minute), 2*day
	two.Follows = &first
	var made []corral.Glidein
	s.write(func(tx *store.Tx) (err error) {
		made, err = ask(tx, s.plan, []plan.Pilot{one, two}, asking{at: s.plan.Sites, first: 1, machine: corral.SiteQueue{CPUs: 4, MemoryMiB: 4000},
			speed: (&plan.Plan{Evidence: plan.Evidence{Assumed: &plan.Assumed{Speeds: map[string]corral.Speed{"local": 0.5}}}}).SpeedAt})
		return err
	})
	if made[0].Speed != 0.5 {
		t.Errorf("the speed of glidein %d is %v, want that of its plan, 0.5", made[0].ID, made[0].Speed)
	}
	if made[0].Follows != 0 || made[1].Follows != made[0].ID || made[1].FollowsAfter != corral.Seconds(22*time.Hour) {
		t.Fatalf("glidein %d follows %d after %s", made[1].ID, made[1].Follows, made[1].FollowsAfter)
	}
	s.glidein = made[0]
	s.works(0)
	var w reconcile.World
	s.write(func(tx *store.Tx) (err error) {
		w, err = worldstate.World(tx, s.glidein.Site)
		return err
	})
	for _, a := range reconcile.Decide(time.Now(), w) {
		if _, ok := a.(reconcile.Retime); ok {
			s.write(func(tx *store.Tx) error { return worldstate.Record(tx, a) })
		}
	}
	again := s.pilots()[2]
	if early := made[1].NotBefore.Sub(again.NotBefore); early < 2*time.Hour-time.Minute || early > 2*time.Hour {
		t.Errorf("it is wanted %s earlier than planned, at %s", early, again.NotBefore)
	}
	if again.State != corral.GlideinWaiting || !strings.HasPrefix(again.Reason, "not before "+again.NotBefore.Format(time.RFC3339)+", to take over from glidein ") {
		t.Errorf("it is %s: %s", again.State, again.Reason)
	}
}

// A damaged plan is refused, and no pilots are requested.
func TestPilotFollowsOnlyAnEarlierOne(t *testing.T) {
	t.Parallel()
	s := newScene(t, inTime, true)
	for _, k := range []int{-1, 0, 7} {
		q := plan.Pilot{Site: "local",
			Shape:   corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)},
			Follows: &k}
		err := storetest.All(s.db).Write(t.Context(), "ada", func(tx *store.Tx) error {
			_, err := ask(tx, s.plan, []plan.Pilot{q}, asking{at: s.plan.Sites, speed: new(plan.Plan).SpeedAt, first: 1, machine: corral.SiteQueue{CPUs: 4, MemoryMiB: 4000}})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "which is not one before it") || len(s.pilots()) != 1 {
			t.Errorf("number %d: %v, and there are %d pilots", k, err, len(s.pilots()))
		}
	}
}
