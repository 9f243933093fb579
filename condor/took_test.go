package condor

import (
	"strings"
	"testing"
)

// TestTookMemory: whoever looks for the reason of a hold finds what glidein.conf has a worker say.
func TestTookMemory(t *testing.T) {
	t.Parallel()
	if !strings.Contains(glideinConf, `WANT_HOLD_REASON = "`+TookMemory+`"`) {
		t.Errorf("glidein.conf does not say %q", TookMemory)
	}
}

// TestRunnerMemory: whoever says what its program takes is understood there.
func TestRunnerMemory(t *testing.T) {
	t.Parallel()
	if !strings.Contains(glideinConf, "min({TARGET."+RunnerAttribute+", 64})") {
		t.Errorf("glidein.conf does not know %s", RunnerAttribute)
	}
}
