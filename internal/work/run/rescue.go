package run

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/work/reuse"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// rescue writes a rescue file beside the .dag file of a run that did not succeed. It returns half a sentence about the
// file, or "" if the run does not come from a .dag file. If the file cannot be written there, it is written to the
// run's directory.
func (d *driver) rescue() string {
	l := layout{d.state.plan.dir}
	o, err := reuse.ReadOrigin(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.lg.Warn("reading the run's origin: no rescue file is written", "error", err)
	}
	if o.Rescue == "" {
		return ""
	}
	is := func(state corral.TaskState) func(int) bool {
		return func(i int) bool { return d.state.x.Task(i).State == state }
	}
	r := dagman.RescueOf(d.state.plan.flow, is(corral.TaskDone), is(corral.TaskFailed))
	r.DAG, r.CreatedAt, r.Data = filepath.Base(o.Rescue), now(), l.path(executor.DataDir)
	name, err := reuse.WriteRescue(o.Rescue, r)
	if err != nil {
		d.lg.Warn("writing the rescue file beside its DAG", "error", err)
		name, err = reuse.WriteRescue(l.path(r.DAG), r)
	}
	if err != nil {
		d.lg.Error("writing a rescue file", "error", err)
		return ""
	}
	return "; what is done is in " + name
}
