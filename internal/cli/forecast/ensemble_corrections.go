package forecast

import (
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/planner/dpds"
)

// A correction is a difference from the published rules that corrects a mistake; its name is used in Switches.Without.
// A correction of the dynamic algorithms has a field in dpds.Fixes; the other corrections apply to SPSS.
type correction struct {
	name  string
	field func(*dpds.Fixes) *bool
}

// The corrections of SPSS.
const (
	guarded = "guard" // a plan is carried out under a guard
	delayed = "delay" // a plan takes the delay of machines into account
)

var corrections = []correction{
	{"afford", func(f *dpds.Fixes) *bool { return &f.Afford }},
	{"again", func(f *dpds.Fixes) *bool { return &f.Again }},
	{"booting", func(f *dpds.Fixes) *bool { return &f.Booting }},
	{"finish", func(f *dpds.Fixes) *bool { return &f.Finish }},
	{"half", func(f *dpds.Fixes) *bool { return &f.RoundDown }},
	{"idle", func(f *dpds.Fixes) *bool { return &f.Idle }},
	{"leaving", func(f *dpds.Fixes) *bool { return &f.Leaving }},
	{"path", func(f *dpds.Fixes) *bool { return &f.Path }},
	{guarded, nil},
	{delayed, nil},
}

// checkWithout refuses an unknown correction, and a correction that does not apply to the algorithm.
func (in EnsembleRequest) checkWithout() error {
	for _, name := range in.Without {
		i := slices.IndexFunc(corrections, func(c correction) bool { return c.name == name })
		switch {
		case i < 0:
			var names []string
			for _, c := range corrections {
				names = append(names, c.name)
			}
			return corral.ErrorAt(corral.Invalid, "--without", "%.40q is none of %q", name, names)
		case in.Algorithm == Rehearsal:
			return corral.ErrorAt(corral.Invalid, "--without", "the rehearsal is ours: name one of %q", Algorithms[1:])
		case (corrections[i].field == nil) != (in.Algorithm == SPSS):
			return corral.ErrorAt(corral.Invalid, "--without", "%s has no correction %s", in.Algorithm, name)
		}
	}
	return nil
}

// lacks reports whether a correction is omitted.
func (in EnsembleRequest) lacks(name string) bool {
	return in.Published || slices.Contains(in.Without, name)
}

// fixes returns the corrections of the dynamic algorithms except those that are omitted.
func (in EnsembleRequest) fixes(all dpds.Fixes) dpds.Fixes {
	for _, c := range corrections {
		if c.field != nil && in.lacks(c.name) {
			*c.field(&all) = false
		}
	}
	return all
}
