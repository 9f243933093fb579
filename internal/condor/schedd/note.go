package schedd

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A note holds the data that the next corrald needs to find a run's jobs again. It is on disk before the first job is
// submitted.
type note struct {
	ID  string `json:"id"`  // the run's name in the schedd, where other corralds may have runs with the same number
	Dir string `json:"dir"` // D

	path    string
	trouble error // why the note could not be read or written; jobs wait until it can
}

// recall reads the note and reports whether it exists. A note that cannot be read is never replaced, because it may
// name jobs in the schedd, which would run twice if the run were given another name.
func (n *note) recall() bool {
	n.trouble = nil
	text, err := os.ReadFile(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var old note
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err == nil && old.ID == "" {
		err = errors.New("it has no name")
	}
	if err != nil {
		n.trouble = fmt.Errorf("reading %s, which names the run's jobs in HTCondor: %w", n.path, err)
		return false
	}
	n.ID, n.Dir = old.ID, old.Dir
	return true
}

// keep stores the run's directory, and reports whether it found an earlier note. It is called before each job is
// submitted, and again after an error.
func (n *note) keep(dir string) (recalled bool) {
	if n.ID != "" && n.Dir == dir && n.trouble == nil {
		return false
	}
	if n.ID == "" {
		if recalled = n.recall(); n.trouble != nil {
			return false
		}
	}
	if n.ID == "" {
		n.ID = rand.Text() // another corrald on the same schedd cannot choose the same name
	}
	n.Dir = dir
	n.trouble = n.write()
	return recalled
}

// write writes the note so that it survives a power failure.
func (n *note) write() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := filepath.Dir(n.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(atomicfile.Keep(n.path, text, 0o600), atomicfile.SyncFolder(filepath.Dir(dir)))
}
