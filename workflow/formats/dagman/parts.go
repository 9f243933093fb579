package dagman

import (
	"errors"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A part represents the contents of one .dag: either the workflow, or a sub-DAG, which is a node in the enclosing part.
type part struct {
	*workflow.Part
	node   string // name of its node in the enclosing part
	prefix string // prefix that a reader adds to the names of its nodes
	file   string
}

// split determines the parts of the workflow.
func (w *writer) split() error {
	parts, err := workflow.PartsOf(w.wf, maxNested)
	if misfit, ok := errors.AsType[*workflow.PartError](err); ok {
		return w.refuse(misfit.Task, "%w", misfit)
	}
	if err != nil {
		return err // unreachable: PartsOf returns no other errors
	}
	w.in, w.before = parts.In, parts.Before
	for k := range parts.All {
		w.parts = append(w.parts, part{Part: &parts.All[k]})
	}
	return nil
}

// local returns the name that a category has in the .dag of a part: its full name without the name of the part's
// sub-DAG, which precedes it. ok is false if the category does not belong to the part.
func (w *writer) local(category string, k int) (name string, ok bool) {
	if k == 0 || category == "" {
		return category, true
	}
	return strings.CutPrefix(category, w.parts[k].Sub.Name+"+")
}

// home returns the innermost part to which a category belongs according to its name.
func (w *writer) home(category string) int {
	for at := len(category); at > 0; at = strings.LastIndexByte(category[:at], '+') {
		for k := 1; k < len(w.parts) && at < len(category); k++ {
			if w.parts[k].Sub.Name == category[:at] {
				return k
			}
		}
	}
	return 0
}
