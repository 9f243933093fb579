package schedd

import (
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/condor"
)

// sentence says what happened, and HTCondor's reason if it gave one.
func sentence(what, why string) string {
	if why = strings.TrimSpace(why); why == "" {
		return what
	}
	return what + ": " + strings.TrimSuffix(why, ".")
}

func terminatedReason(t condor.Terminated) string {
	if t.Signal != 0 {
		return fmt.Sprintf("its executor was killed by signal %d", t.Signal)
	}
	return fmt.Sprintf("its executor ended with status %d", t.ReturnValue)
}
