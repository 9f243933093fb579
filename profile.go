package corral

import (
	"encoding/json"
	"time"
)

// ProfileID identifies a profile that corrald keeps.
type ProfileID int64

// A ProfileState specifies whether plans may use a profile.
type ProfileState string

const (
	ProfileReady   ProfileState = "READY"
	ProfileDeleted ProfileState = "DELETED" // tombstone, without its document
)

// ProfileStates lists all states in their order of life.
var ProfileStates = []ProfileState{ProfileReady, ProfileDeleted}

// A Profile holds measurements of task executions by kind of task. Its name is unique among its owner's profiles. It
// was made from its Sources; every profile that is merged into it adds its measurements.
type Profile struct {
	ID        ProfileID       `json:"id"`
	Name      string          `json:"name"`
	Owner     string          `json:"owner"`
	Sources   []string        `json:"sources"` // as named in the request: files, library:NAME, run:ID, other profiles
	Runs      int             `json:"runs"`    // measured runs; 0 for a profile made from a table
	Kinds     int             `json:"kinds"`   // of tasks
	Tasks     int64           `json:"tasks"`
	Digest    string          `json:"digest"`            // sha256:HEX of the document
	Document  json.RawMessage `json:"profile,omitempty"` // see package profile; not in lists
	State     ProfileState    `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}
