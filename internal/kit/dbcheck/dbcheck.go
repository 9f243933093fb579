// Package dbcheck keeps the result of the last check of corrald's database, in a small file beside it.
//
// Several programs need that result, and only one of them can open the database: corrald checks the database at each
// start, a backup also checks it, in its own process, `corral doctor` reports the result even if corrald is down, and
// /metrics exports it as a number. The file also shows that a database existed: if it has disappeared, corrald does not
// replace it with an empty database.
package dbcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// A Source is the program that performed a check.
type Source string

const (
	Start  Source = "start"  // of corrald
	Backup Source = "backup" // `corral admin backup`
)

// A Record is the result of a check.
type Record struct {
	At     time.Time `json:"at"`
	By     Source    `json:"by"`
	Damage string    `json:"damage,omitempty"` // SQLite's findings; empty: the database is intact
}

// Whole reports whether the check found no damage.
func (r Record) Whole() bool { return r.Damage == "" }

// File returns the path of the record for the database at path.
func File(path string) string { return path + "-check" }

// maxRecord limits the size of a record, in bytes.
const maxRecord = 64 << 10

// Read returns the record of the database at path; found is false if the database has never been checked.
func Read(path string) (r Record, found bool, err error) {
	b, err := input.ReadFile(File(path), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("reading the result of the last check: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, false, fmt.Errorf("reading the result of the last check, %s: %w", File(path), err)
	}
	return r, true, nil
}

// Write replaces the record of the database at path. Several processes may call it at the same time.
func Write(path string, r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err // unreachable: all fields can be encoded
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(File(path))+"-") // mode 0600
	if err != nil {
		return fmt.Errorf("saving the result of the check: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), File(path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("saving the result of the check: %w", err), os.Remove(f.Name()))
	}
	return nil
}
