package reuse

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// OriginFile is where a run's directory has its origin.
const OriginFile = "origin.json"

// An Origin says where a run's workflow came from, and what its inputs were like when the run was made. It is for runs
// that come after it: one with the same origin may keep what has not changed since.
type Origin struct {
	SourceDir string           `json:"source_dir"`
	Workflow  string           `json:"workflow"` // the name of its file
	Rescue    string           `json:"rescue,omitempty"`
	Inputs    map[string]Stamp `json:"inputs,omitempty"` // by their names in the workflow
}

// A Stamp tells two versions of a file apart as make does, without reading them.
type Stamp struct {
	Bytes    int64 `json:"bytes"`
	Modified int64 `json:"modified_ns"` // since 1970
}

// maxOrigin bounds the file: as long as the request that it was made of.
const maxOrigin = api.MaxRunBody

// StampOf looks at a file; ok is false if there is none.
func StampOf(path string) (s Stamp, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}, false
	}
	return Stamp{info.Size(), info.ModTime().UnixNano()}, true
}

// OriginOf is the origin of a run that is asked for; inputs are its files, by their names in the workflow.
func OriginOf(r api.NewRun, inputs map[string]string) Origin {
	o := Origin{SourceDir: r.SourceDir, Workflow: filepath.Base(r.WorkflowName), Rescue: r.Rescue,
		Inputs: make(map[string]Stamp, len(inputs))}
	for name, path := range inputs {
		if s, ok := StampOf(path); ok {
			o.Inputs[name] = s
		}
	}
	return o
}

// Keep adds the inputs of an origin before that this one does not name: those that only tasks read which need not run
// again, and which have not changed since. It returns o.
func (o Origin) Keep(before Origin) Origin {
	for name, stamp := range before.Inputs {
		if _, known := o.Inputs[name]; !known {
			o.Inputs[name] = stamp
		}
	}
	return o
}

// Same reports whether both are of one workflow file.
func (o Origin) Same(p Origin) bool { return o.SourceDir == p.SourceDir && o.Workflow == p.Workflow }

// Write leaves the origin in a run's directory.
func (o Origin) Write(dir string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err // unreachable: it is texts and numbers
	}
	return os.WriteFile(filepath.Join(dir, OriginFile), append(text, '\n'), 0o600)
}

// ReadOrigin reads the origin of the run with a directory; runs of earlier versions have none.
func ReadOrigin(dir string) (o Origin, err error) {
	text, err := input.ReadFile(filepath.Join(dir, OriginFile), maxOrigin)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return Origin{}, fmt.Errorf("reading the run's origin: %w", err)
	}
	return o, nil
}

// Latest finds the latest run of the same workflow file whose directory is there; the id 0: there is none. One that is
// not over is a Conflict error: what it will have done is not known yet.
func Latest(rows []corral.Run, o Origin) (corral.Run, Origin, error) {
	for _, row := range slices.Backward(rows) {
		was, err := ReadOrigin(row.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return corral.Run{}, Origin{}, corral.ErrorAt(corral.Failed, "changed", "run %d: %w", row.ID, err)
		case !was.Same(o):
		case !row.State.Over():
			return corral.Run{}, Origin{}, corral.ErrorAt(corral.Conflict, "changed",
				"run %d of the same workflow is %s: what it will have done is not known yet", row.ID, row.State)
		default:
			return row, was, nil
		}
	}
	return corral.Run{}, Origin{}, nil
}
