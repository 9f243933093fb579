package reuse

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// OriginFile is the name of the file with a run's origin in its directory.
const OriginFile = "origin.json"

// An Origin records the source of a run's workflow, and the state of its inputs when the run was created. Later runs
// use it: a run with the same origin may keep results that have not changed since.
type Origin struct {
	SourceDir string           `json:"source_dir"`
	Workflow  string           `json:"workflow"` // the name of its file
	Rescue    string           `json:"rescue,omitempty"`
	Inputs    map[string]Stamp `json:"inputs,omitempty"` // stamps by the names of inputs in the workflow
}

// A Stamp distinguishes versions of a file by size and modification time, without reading the file, much as make does.
type Stamp struct {
	Bytes    int64 `json:"bytes"`
	Modified int64 `json:"modified_ns"` // nanoseconds since 1970
}

// maxOrigin limits the file to the size of the request from which it was created.
const maxOrigin = api.MaxRunBody

// StampOf returns the stamp of a file; ok is false if it does not exist.
func StampOf(path string) (s Stamp, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}, false
	}
	return Stamp{info.Size(), info.ModTime().UnixNano()}, true
}

// OriginOf returns the origin of a requested run; inputs are its files, by their names in the workflow.
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

// Keep adds the inputs of an earlier origin that o does not name: these inputs are read only by tasks that need not run
// again, and have not changed since. Keep returns o.
func (o Origin) Keep(before Origin) Origin {
	for name, stamp := range before.Inputs {
		if _, known := o.Inputs[name]; !known {
			o.Inputs[name] = stamp
		}
	}
	return o
}

// Same reports whether both origins refer to the same workflow file.
func (o Origin) Same(p Origin) bool { return o.SourceDir == p.SourceDir && o.Workflow == p.Workflow }

// Write writes the origin into a run's directory.
func (o Origin) Write(dir string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err // unreachable: an Origin consists of strings and numbers
	}
	return os.WriteFile(filepath.Join(dir, OriginFile), append(text, '\n'), 0o600)
}

// ReadOrigin reads the origin of the run in a directory; runs created by earlier versions have no origin.
func ReadOrigin(dir string) (o Origin, err error) {
	text, err := input.ReadFile(filepath.Join(dir, OriginFile), maxOrigin)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o, wrap.Errorf(err, "reading the run's origin")
}

// Latest finds the latest run of the same workflow file whose directory exists; the id is 0 if there is no such run. It
// returns a Conflict error if that run is not over, because its results are not known yet.
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
				"run %d of the same workflow is %s: its results are not known yet", row.ID, row.State)
		default:
			return row, was, nil
		}
	}
	return corral.Run{}, Origin{}, nil
}
