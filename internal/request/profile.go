package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/api"
)

// checkProfiles reports what is wrong with the profiles that a request names. One that is given twice would count each
// of its tasks twice.
func checkProfiles(k *checker, all []api.PlanProfile) {
	k.invalid(len(all) > maxProfiles, "profiles", "%d are more than %d", len(all), maxProfiles)
	for i, p := range all[:min(len(all), maxProfiles)] {
		place := fmt.Sprintf("profiles[%d]", i)
		same := func(q api.PlanProfile) bool { return q.Name == p.Name }
		known := strings.HasPrefix(p.Name, api.LibraryProfile) || strings.HasPrefix(p.Name, api.RunProfile)
		k.invalid(p.Name == "", place, "it has no name")
		k.invalid(slices.ContainsFunc(all[:i], same), place, "%.80q is given twice", p.Name)
		k.invalid(!known && len(p.Document) == 0, place, "%.80q is neither %sNAME nor %sID, and has no document",
			p.Name, api.LibraryProfile, api.RunProfile)
		k.invalid(known && len(p.Document) > 0, place, "%.80q has a document, too", p.Name)
	}
}
