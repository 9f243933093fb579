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

// A note is what the next corrald has to know of a run's jobs: without it they are not found again. It is on disk
// before the first of them is submitted.
type note struct {
	ID  string `json:"id"`  // the run's name in the schedd, where other corralds may have runs of the same number
	Dir string `json:"dir"` // D

	path    string
	trouble error // why it could not be read or written; jobs wait meanwhile
}

// recall reads the note, if there is one, and reports whether there was. A note that cannot be read may name jobs in
// the schedd, which would run twice if the run got another name: so it is never replaced.
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

// keep writes down the run's directory, and reports whether it found a note from before. It is called for each job
// before that is submitted, and again while there is trouble.
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
		n.ID = rand.Text() // nothing that another corrald, on the same schedd, could choose too
	}
	n.Dir = dir
	n.trouble = n.write()
	return recalled
}

// write puts the note where a power failure does not reach it.
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
