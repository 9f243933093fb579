package dagman

import (
	"fmt"

	"github.com/corral-pilot/corral/workflow"
)

// Lost describes, in parts of a sentence, the data of a workflow that Write omits because the format cannot represent
// it.
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
		all = append(all, fmt.Sprintf("the measurements of %d tasks", measured))
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
