package request

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Workers serve 55 s of a walltime of one minute: a successor cannot overlap its predecessor for longer.
func TestAnOverlapIsWithinWhatWorkersServe(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[time.Duration]string{
		0: "", 30 * time.Second: "", 54 * time.Second: "",
		55 * time.Second: "55s is not less than the 55s that workers serve of a walltime of 1m0s",
		2 * time.Minute:  "2m0s is not less than the 55s that workers serve of a walltime of 1m0s",
	} {
		_, err := Glidein(api.NewGlidein{Site: "here", Shape: corral.Shape{Walltime: corral.Seconds(time.Minute)},
			Resubmission: api.Resubmission{Overlap: corral.Seconds(overlap)}}, time.Now())
		switch {
		case want == "" && err != nil, want != "" && corral.KindOf(err) != corral.Invalid:
			t.Errorf("%s: %v", overlap, err)
		case want != "" && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %q, want %q", overlap, err, want)
		}
	}
}
