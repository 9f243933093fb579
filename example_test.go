package corral_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// A site moves by its table. A move that the table does not contain for the present state is a Conflict error and
// changes nothing.
func ExampleSite_Apply() {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	site := corral.Site{ID: 1, Name: "hpc", State: corral.SiteNew}
	for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged, corral.SiteUnstaged} {
		moved, history, err := site.Apply(move, "", now)
		if err != nil {
			fmt.Println(corral.KindOf(err), "error:", err)
			continue
		}
		for _, e := range history {
			fmt.Printf("%s %d: %s, from %s to %s\n", e.Object, e.Of, e.Event, e.From, e.To)
		}
		site = moved
	}
	fmt.Println(site.Name, "is", site.State)
	// Output:
	// site 1: stage, from NEW to STAGING
	// site 1: staged, from STAGING to READY
	// conflict error: site hpc: unstaged is not possible in state READY
	// hpc is READY
}
