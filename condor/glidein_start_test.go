package condor

import (
	"fmt"
	"testing"
	"time"
)

// A job is accepted if its runtime at the glidein's speed ends before the glidein.
func TestGlideinStart(t *testing.T) {
	t.Parallel()
	for speed, want := range map[float64]string{
		0:   "time() < 90 && time() + ifThenElse(isUndefined(TARGET.R), 0, TARGET.R) <= 100",
		1:   "time() < 90 && time() + ifThenElse(isUndefined(TARGET.R), 0, TARGET.R) <= 100",
		0.5: "time() < 90 && time() + ifThenElse(isUndefined(TARGET.R), 0, TARGET.R / 0.5) <= 100",
	} {
		c := GlideinConfig{RuntimeAttribute: "R", Speed: speed,
			Times: GlideinTimes{Retire: time.Unix(90, 0), End: time.Unix(100, 0)}}
		got := ""
		c.times(func(name, format string, values ...any) {
			if name == "START" {
				got = fmt.Sprintf(format, values...)
			}
		})
		if got != want {
			t.Errorf("at speed %v START is %q, want %q", speed, got, want)
		}
	}
}
