//go:build soak

package planning

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/profile"
)

// measured returns a profile of the given number of kinds of tasks, with the given number of tasks each; pad makes
// names and ids longer.
func measured(t *testing.T, kinds, tasks int, pad string) *profile.Profile {
	t.Helper()
	p := profile.New()
	for k := range kinds {
		for i := range tasks {
			s := profile.Sample{Subject: profile.Subject{Transformation: fmt.Sprint("k", k), Level: profile.AllLevels}, Run: "r"}
			if s.ID = fmt.Sprint(k, ".", i); tasks > 1 {
				s.ID += pad
			} else {
				s.Transformation += pad
			}
			s.Values.Set(profile.Runtime, float64(i))
			if err := p.Add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// TestKeptProfilesAreBounded: samples are removed until a profile fits, but statistics are not; a profile whose
// statistics alone are too large is refused.
func TestKeptProfilesAreBounded(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 900)
	var row corral.Profile
	if err := describe(&row, measured(t, 20, 1000, pad)); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ReadJSON(bytes.NewReader(row.Document), "kept")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Classes()[0]
	if len(row.Document) > maxDocument || len(c.Samples()) != mostSamples/4 || c.Count() != 1000 || row.Tasks != 20_000 {
		t.Errorf("%d bytes, %d samples of %d tasks, %d in all", len(row.Document), len(c.Samples()), c.Count(), row.Tasks)
	}
	err = describe(&row, measured(t, 18_000, 1, pad))
	if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "18000 kinds of tasks") {
		t.Errorf("%v, want a refusal of so many kinds", err)
	}
}
