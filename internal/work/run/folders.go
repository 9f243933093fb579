package run

import (
	"cmp"
	"path"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// apart refuses a workflow in which one file is inside another, as a/b is inside a. A folder returned by a worker may
// contain symbolic links to any place on this machine, and a file name through such a link would be read or written
// there. A user without a source folder here may not be allowed to see this machine's files, so such names are refused.
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
					"task %s names %s, which is inside the folder %s of task %s: "+
						"without source_dir, a name must not be inside another", task, name, folder, names[folder])
			}
			if folder == "." || folder == "/" {
				break
			}
		}
	}
	return nil
}
