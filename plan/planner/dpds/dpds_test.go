package dpds

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

const dollar = 1_000_000

// machines returns n machines that have been billed from the beginning, the first of which are busy.
func machines(n, busy int) (all []ensemble.Instance) {
	for id := range n {
		m := ensemble.Instance{ID: id, Held: true, Ready: true, Slots: 1}
		if id < busy {
			m.Busy = 1
		}
		all = append(all, m)
	}
	return all
}

// TestStep checks the decisions of a step, for the published rules and for ours.
func TestStep(t *testing.T) {
	t.Parallel()
	const soon = time.Hour - 80*time.Second // 80 s before the end of the first hour of all machines
	booting := ensemble.Instance{ID: 9, Held: true}
	for _, tt := range []struct {
		name            string
		view            ensemble.View
		rules           func(*Rules)
		published, ours ensemble.Orders
		next            time.Duration // 0: the interval
	}{
		{name: "all are busy: one more", view: ensemble.View{Now: time.Minute, Machines: machines(2, 2)},
			published: ensemble.Orders{Start: 1}, ours: ensemble.Orders{Start: 1}},
		{name: "one in ten is idle: that is not more than nine tenths", rules: func(r *Rules) { r.Machines = 20 },
			view: ensemble.View{Now: time.Minute, Machines: machines(10, 9)}},
		{name: "as many as there may be", view: ensemble.View{Now: time.Minute, Machines: machines(6, 6)}},
		{name: "SPDS has as many as at first", rules: func(r *Rules) { r.Fixed = true },
			view: ensemble.View{Now: time.Minute, Machines: machines(2, 2)}},
		{name: "one boots: only we count it", rules: func(r *Rules) { r.Machines = 3 },
			view:      ensemble.View{Now: time.Minute, Machines: append(machines(2, 2), booting)},
			published: ensemble.Orders{Start: 1}},
		{name: "half of the idle ones go, when their hour ends", view: ensemble.View{Now: soon, Machines: machines(6, 2)},
			published: ensemble.Orders{Stop: []int{2, 3}}, ours: ensemble.Orders{Stop: []int{2, 3}}},
		{name: "not before", view: ensemble.View{Now: soon - 12*time.Second, Machines: machines(6, 2)}},
		{name: "half of three: two as published, one by us", view: ensemble.View{Now: soon, Machines: machines(5, 2)},
			published: ensemble.Orders{Stop: []int{2, 3}}, ours: ensemble.Orders{Stop: []int{2}}},
		{name: "the only one goes", view: ensemble.View{Now: soon, Machines: machines(1, 0)},
			published: ensemble.Orders{Stop: []int{0}}, ours: ensemble.Orders{Stop: []int{0}}},
		{name: "four can be kept of six; we keep the busy ones",
			view:      ensemble.View{Now: soon, Ended: 8 * dollar, Machines: slices.Concat(machines(6, 0)[:3], machines(6, 6)[3:])},
			published: ensemble.Orders{Stop: []int{0, 1}}, ours: ensemble.Orders{Stop: []int{0, 1}}},
		{name: "busy ones that came first go as published",
			view:      ensemble.View{Now: soon, Ended: 8 * dollar, Machines: machines(6, 3)},
			published: ensemble.Orders{Stop: []int{0, 1}}, ours: ensemble.Orders{Stop: []int{3, 4}}},
		{name: "money for one, but not to keep the others besides",
			view:      ensemble.View{Now: time.Minute, Ended: 13*dollar + dollar/2, Machines: machines(2, 2)},
			published: ensemble.Orders{Start: 1}},
		{name: "all that is left keeps those that are there",
			view: ensemble.View{Now: time.Minute, Ended: 14 * dollar, Machines: machines(2, 2)}},
		{name: "after the deadline all go, when their hour ends",
			view:      ensemble.View{Now: 6*time.Hour + soon, Machines: machines(2, 2)},
			published: ensemble.Orders{Stop: []int{0, 1}}, ours: ensemble.Orders{Stop: []int{0, 1}}},
		{name: "nothing is left to run: only we let all go",
			view: ensemble.View{Now: time.Minute, Over: true, Machines: machines(2, 0)},
			ours: ensemble.Orders{Stop: []int{0, 1}}},
		{name: "pilots that have ended are replaced", rules: func(r *Rules) { r.Once = true },
			view:      ensemble.View{Now: time.Hour, Ended: 4 * dollar, Machines: machines(2, 2)},
			published: ensemble.Orders{Start: 4}, ours: ensemble.Orders{Start: 4}},
		{name: "as far as there is money", rules: func(r *Rules) { r.Once = true },
			view:      ensemble.View{Now: time.Hour, Ended: 15 * dollar},
			published: ensemble.Orders{Start: 3}, ours: ensemble.Orders{Start: 3}},
		{name: "and not if those that are left are idle", rules: func(r *Rules) { r.Once = true },
			view: ensemble.View{Now: time.Hour, Ended: 4 * dollar, Machines: machines(2, 0)}},
		{name: "of pilots that are billed as long as they are held, too, if the others are busy",
			rules:     func(r *Rules) { r.Ends = true },
			view:      ensemble.View{Now: time.Minute, Ended: 4 * dollar, Machines: machines(2, 2)},
			published: ensemble.Orders{Start: 4}, ours: ensemble.Orders{Start: 4}},
		{name: "for they may have been let go", rules: func(r *Rules) { r.Ends = true },
			view: ensemble.View{Now: time.Minute, Ended: 4 * dollar, Machines: machines(5, 4)}},
		{name: "billed by the second: the money lasts for two until a step that comes sooner", rules: func(r *Rules) {
			r.Terms, r.Budget = ensemble.Terms{Price: 1000, Period: time.Second}, 2*(60+40)*1000
		}, view: ensemble.View{Now: time.Minute, Machines: machines(2, 2)}, published: ensemble.Orders{Start: 1},
			ours: ensemble.Orders{Start: 1}, next: 22500 * time.Millisecond},
		{name: "and not for both any longer; we know that they take a second to go", rules: func(r *Rules) {
			r.Terms, r.Budget = ensemble.Terms{Price: 1000, Period: time.Second}, (2*60+3)*1000
		}, view: ensemble.View{Now: time.Minute, Machines: machines(2, 1)}, published: ensemble.Orders{Stop: []int{0}},
			ours: ensemble.Orders{Stop: []int{1, 0}}, next: 90 * time.Second >> 6},
		{name: "nothing is there yet", view: ensemble.View{Now: time.Minute}},
	} {
		for want, r := range map[*ensemble.Orders]Rules{
			&tt.published: Published(18*dollar, 6*time.Hour, ensemble.Hourly),
			&tt.ours:      Default(18*dollar, 6*time.Hour, ensemble.Hourly),
		} {
			r.Machines = 6
			if tt.rules != nil {
				tt.rules(&r)
			}
			if got := r.Step(tt.view); got.Start != want.Start || !slices.Equal(got.Stop, want.Stop) ||
				got.Next != tt.view.Now+cmp.Or(tt.next, 90*time.Second) {
				t.Errorf("%s (ours: %v): %+v, want %+v", tt.name, want == &tt.ours, got, *want)
			}
		}
	}
}

// At the beginning, the number of machines that spend the budget is requested.
func TestBegin(t *testing.T) {
	t.Parallel()
	got := Default(18*dollar, 6*time.Hour, ensemble.Hourly).Step(ensemble.View{})
	if got.Start != 3 || got.Stop != nil || got.Next <= 0 {
		t.Errorf("%+v, want 3 machines", got)
	}
}

// TestAdmit checks whether a workflow is begun, and whether it may be considered again.
func TestAdmit(t *testing.T) {
	t.Parallel()
	start := ensemble.View{Machines: machines(3, 0)}
	for _, tt := range []struct {
		name  string
		aware bool
		view  ensemble.View
		claim ensemble.Claim
		want  ensemble.Verdict
	}{
		{"DPDS begins all", false, start, ensemble.Claim{Runtime: 100 * time.Hour}, ensemble.Verdict{Begin: true}},
		{"it is paid: 17.90 are left", true, start, ensemble.Claim{Runtime: 17 * time.Hour}, ensemble.Verdict{Begin: true}},
		{"the margin is not spent", true, start, ensemble.Claim{Runtime: 18*time.Hour - 5*time.Minute}, ensemble.Verdict{}},
		{"nor what others take", true, start, ensemble.Claim{Runtime: 9 * time.Hour, Begun: 9 * time.Hour}, ensemble.Verdict{}},
		{"what is paid and not used counts", true, ensemble.View{Now: time.Minute, Ended: 15 * dollar, Machines: machines(3, 3)},
			ensemble.Claim{Runtime: 2 * time.Hour}, ensemble.Verdict{Begin: true}},
		{"its critical path is too long forever", true, start, ensemble.Claim{Path: 6*time.Hour + 1},
			ensemble.Verdict{Never: true}},
	} {
		r := Default(18*dollar, 6*time.Hour, ensemble.Hourly)
		r.Aware = tt.aware
		got := r.Admit(tt.view, tt.claim)
		if (got.Reason == "") != got.Begin {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if got.Reason = ""; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// As published, a rejected workflow is not considered again, and critical paths are ignored (traps T26, T27).
func TestAdmitAsPublished(t *testing.T) {
	t.Parallel()
	r := Published(18*dollar, 6*time.Hour, ensemble.Hourly)
	r.Aware = true
	view := ensemble.View{Machines: machines(3, 0)}
	if got := r.Admit(view, ensemble.Claim{Runtime: time.Hour, Path: 7 * time.Hour}); !got.Begin {
		t.Errorf("a path of 7 hours: %+v", got)
	}
	if got := r.Admit(view, ensemble.Claim{Runtime: 18 * time.Hour}); got.Begin || !got.Never {
		t.Errorf("18 hours of work: %+v", got)
	}
}
