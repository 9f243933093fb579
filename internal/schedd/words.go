package schedd

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/corral-pilot/corral/condor"
)

// prefix is what the schedd puts before a worker's reason: which slot it was the user sees elsewhere, without its noise.
var prefix = regexp.MustCompile(`^Error from [^ :]+@[^ :]+: `)

// sentence says what happened, and HTCondor's reason if it gave one.
func sentence(what, why string) string {
	if why = prefix.ReplaceAllString(strings.TrimSpace(why), ""); why == "" {
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
