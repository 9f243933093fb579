package dagman

import (
	"fmt"

	"github.com/corral-pilot/corral/workflow"
)

// Lost says, in parts of a sentence, what Write leaves out of a workflow because the format has no place for it.
func Lost(wf *workflow.Workflow) (all []string) {
	if n := len(wf.FileSizes); n > 0 {
		all = append(all, fmt.Sprintf("the sizes of %d files", n))
	}
	measured := 0
	for i := range wf.Tasks {
		if wf.Tasks[i].Measured() {
			measured++
		}
	}
	if measured > 0 {
		all = append(all, fmt.Sprintf("what was measured of %d tasks", measured))
	}
	jobs := 0
	for _, s := range wf.Subworkflows {
		if s.Job {
			jobs++
		}
	}
	if jobs > 0 {
		all = append(all, fmt.Sprintf("the grouping of tasks into %d jobs of several processes", jobs))
	}
	return all
}
