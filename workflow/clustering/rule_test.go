package clustering_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow/clustering"
)

func TestRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]clustering.Rule{
		"": {}, "none": {},
		"horizontal=1":  clustering.Levels(1),
		"horizontal=40": clustering.Levels(40),
		"runtime=5m":    clustering.Lasting(5 * time.Minute),
		"runtime=1.5s":  clustering.Lasting(1500 * time.Millisecond),
		"label":         {Kind: clustering.ByLabel}, "vertical": {Kind: clustering.Vertical}, "auto": {Kind: clustering.Auto},
	} {
		c, err := clustering.Parse(text)
		if err != nil || c != want {
			t.Errorf("%q is %v, %v", text, c, err)
		}
		again, err := clustering.Parse(c.String())
		if err != nil || again != c {
			t.Errorf("%q is written as %q, which is %v, %v", text, c, again, err)
		}
	}
	for _, text := range []string{"horizontal", "horizontal=", "horizontal=0", "horizontal=-1", "horizontal=x",
		"None", "horizontal=99999999999999999999", "none=1", "=", "vertical=", "vertical=2", "label=x", "auto=1",
		"runtime", "runtime=", "runtime=0s", "runtime=-1m", "runtime=5", "runtime=1us", "runtime=1h=2"} {
		if c, err := clustering.Parse(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
}
