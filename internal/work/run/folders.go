package run

import (
	"cmp"
	"path"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// apart refuses a workflow in which a file that a task names is within another. A folder that a worker sends back may
// have symbolic links that lead anywhere on this machine, and a name through one of them would be read, or written,
// there. Whoever has no folder here, and so is perhaps not to see this machine's files, gets no such names.
func apart(flow *workflow.Workflow) error {
	names := map[string]string{} // :: file → a task that names it
	for i := range flow.Tasks {
		t := &flow.Tasks[i]
		for _, list := range [][]string{t.Inputs, t.Outputs, {t.Stdin, t.Stdout, t.Stderr}} {
			for _, name := range list {
				if name != "" {
					names[path.Clean(name)] = t.ID
					names[path.Clean(cmp.Or(t.Names[name], name))] = t.ID
				}
			}
		}
	}
	for name, task := range names {
		for folder := path.Dir(name); name != "."; folder = path.Dir(folder) {
			if names[folder] != "" {
				return corral.ErrorAt(corral.Invalid, "workflow",
					"task %s names %s, which is within the folder %s of task %s: "+
						"without source_dir a name may not be within another", task, name, folder, names[folder])
			}
			if folder == "." || folder == "/" {
				break
			}
		}
	}
	return nil
}
