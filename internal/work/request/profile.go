package request

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral/api"
)

// maxSource is the maximum length of a source's name, in bytes: most are paths of files.
const maxSource = 4096

// CheckProfile checks a request to store a profile. A name with the suffix of a file would be mistaken for a file.
func CheckProfile(in api.NewProfile) error {
	var k checker
	k.name("name", in.Name)
	for _, suffix := range []string{".json", ".csv"} {
		k.invalid(strings.HasSuffix(in.Name, suffix), "name", "%q would be mistaken for a file: leave out %s", in.Name,
			suffix)
	}
	k.invalid(len(in.Sources) == 0, "sources", "missing")
	checkSources(&k, "sources", in.Sources)
	return k.err
}

// checkSources checks the profiles that a request names. The tasks of a profile given twice would be counted twice.
func checkSources(k *checker, field string, all []api.ProfileSource) {
	k.invalid(len(all) > maxProfiles, field, "%d are more than %d", len(all), maxProfiles)
	for i, p := range all[:min(len(all), maxProfiles)] {
		place := fmt.Sprintf("%s[%d]", field, i)
		same := func(q api.ProfileSource) bool { return q.Name == p.Name }
		own := strings.HasPrefix(p.Name, api.LibraryProfile) || strings.HasPrefix(p.Name, api.RunProfile)
		k.invalid(p.Name == "", place, "the name is missing")
		k.invalid(slices.ContainsFunc(all[:i], same), place, "%.80q is given twice", p.Name)
		k.invalid(own && len(p.Document) > 0, place, "%.80q must not have a document", p.Name)
		k.invalid(len(p.Name) > maxSource || strings.ContainsFunc(p.Name, unicode.IsControl), place,
			"want a name of at most %d bytes without control characters", maxSource)
		if !own && len(p.Document) == 0 {
			k.name(place, p.Name)
		}
	}
}
