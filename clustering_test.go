package corral_test

import (
	"testing"

	"github.com/corral-pilot/corral"
)

func TestClustering(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]corral.Clustering{"": {}, "none": {}, "horizontal=1": {Groups: 1},
		"horizontal=40": {Groups: 40}} {
		c, err := corral.ParseClustering(text)
		if err != nil || c != want {
			t.Errorf("%q is %v, %v", text, c, err)
		}
		again, err := corral.ParseClustering(c.String())
		if err != nil || again != c {
			t.Errorf("%q is written as %q, which is %v, %v", text, c, again, err)
		}
	}
	for _, text := range []string{"horizontal", "horizontal=", "horizontal=0", "horizontal=-1", "horizontal=x",
		"vertical", "None", "horizontal=99999999999999999999"} {
		if c, err := corral.ParseClustering(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
}
