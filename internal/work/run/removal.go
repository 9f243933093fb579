package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// gone reports which required part of the run's directory is missing, or "" if none is. Then someone has removed or
// moved the directory: the outputs of tasks are lost, but writing to the journal does not fail, because its file is
// open. Other errors may be temporary.
func (p *plan) gone() string {
	l := layout{p.dir}
	for _, path := range []string{l.dir, l.path(executor.DataDir), l.path(journalFile)} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("%s was removed during the run", path)
		}
	}
	return ""
}
