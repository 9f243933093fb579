package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/corral-pilot/corral/embedded/executor"
)

// gone says what is missing of a run's directory that must be there for as long as the run is driven; "" if nothing is.
// Somebody has removed it, or moved it away: what tasks write then is nowhere, and what they wrote before is lost,
// while the journal's file, which is open, goes on as if it were there. Anything else that is wrong with it may pass.
func (p *plan) gone() string {
	l := layout{p.dir}
	for _, path := range []string{l.dir, l.path(executor.DataDir), l.path(journalFile)} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("%s was removed while the run went on", path)
		}
	}
	return ""
}
