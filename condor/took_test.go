package condor

import (
	"strings"
	"testing"
)

// TestTookMemory checks that the code that examines hold reasons uses the same words as glidein.conf.
func TestTookMemory(t *testing.T) {
	t.Parallel()
	if !strings.Contains(glideinConf, `WANT_HOLD_REASON = "`+TookMemory+`"`) {
		t.Errorf("glidein.conf does not say %q", TookMemory)
	}
}

// TestRunnerMemory checks that glidein.conf reads the attribute with the memory of the runner program.
func TestRunnerMemory(t *testing.T) {
	t.Parallel()
	if !strings.Contains(glideinConf, "min({TARGET."+RunnerAttribute+", 64})") {
		t.Errorf("glidein.conf does not know %s", RunnerAttribute)
	}
}
