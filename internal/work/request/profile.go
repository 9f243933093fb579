package request

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral/api"
)

// maxSource is how many bytes the name of a source may have: most are paths of files.
const maxSource = 4096

// CheckProfile reports what is wrong with a request to keep a profile. A name that ends as a file's does would be taken
// for one.
func CheckProfile(in api.NewProfile) error {
	var k checker
	k.name("name", in.Name)
	for _, suffix := range []string{".json", ".csv"} {
		k.invalid(strings.HasSuffix(in.Name, suffix), "name", "%q would be taken for a file: leave out %s", in.Name,
			suffix)
	}
	k.invalid(len(in.Sources) == 0, "sources", "there are none")
	checkSources(&k, "sources", in.Sources)
	return k.err
}

// checkSources reports what is wrong with the profiles that a request names. One that is given twice would count each
// of its tasks twice.
func checkSources(k *checker, field string, all []api.ProfileSource) {
	k.invalid(len(all) > maxProfiles, field, "%d are more than %d", len(all), maxProfiles)
	for i, p := range all[:min(len(all), maxProfiles)] {
		place := fmt.Sprintf("%s[%d]", field, i)
		same := func(q api.ProfileSource) bool { return q.Name == p.Name }
		own := strings.HasPrefix(p.Name, api.LibraryProfile) || strings.HasPrefix(p.Name, api.RunProfile)
		k.invalid(p.Name == "", place, "it has no name")
		k.invalid(slices.ContainsFunc(all[:i], same), place, "%.80q is given twice", p.Name)
		k.invalid(own && len(p.Document) > 0, place, "%.80q has a document, too", p.Name)
		k.invalid(len(p.Name) > maxSource || strings.ContainsFunc(p.Name, unicode.IsControl), place,
			"want a name of at most %d bytes without control characters", maxSource)
		if !own && len(p.Document) == 0 {
			k.name(place, p.Name)
		}
	}
}
