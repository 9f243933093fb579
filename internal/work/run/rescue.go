package run

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/work/reuse"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// rescue leaves a rescue file beside the .dag that the run came from, and says so in half a sentence; "" if it came
// from none. It is for a run that ends without success. A file that cannot be written there is in the run's directory.
func (d *driver) rescue() string {
	l := layout{d.state.plan.dir}
	o, err := reuse.ReadOrigin(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.lg.Warn("no rescue file is written", "error", err)
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
		d.lg.Warn("the rescue file is not beside its DAG", "error", err)
		name, err = reuse.WriteRescue(l.path(r.DAG), r)
	}
	if err != nil {
		d.lg.Error("writing a rescue file", "error", err)
		return ""
	}
	return "; what is done is in " + name
}
