package dagman

import (
	"errors"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A part is what one .dag holds: the workflow, or a sub-DAG of it, which is a node in the part around it.
type part struct {
	*workflow.Part
	node   string // its name in the part around it
	prefix string // what a reader puts before the names of its nodes
	file   string
}

// split finds the parts.
func (w *writer) split() error {
	parts, err := workflow.PartsOf(w.wf, maxNested)
	if misfit, ok := errors.AsType[*workflow.PartError](err); ok {
		return w.refuse(misfit.Task, "%w", misfit)
	}
	if err != nil {
		return err // unreachable: there are no others
	}
	w.in, w.before = parts.In, parts.Before
	for k := range parts.All {
		w.parts = append(w.parts, part{Part: &parts.All[k]})
	}
	return nil
}

// local is what a category is called in a part: there the name of the sub-DAG goes before it. ok is false if the
// category is not one of the part's.
func (w *writer) local(category string, k int) (name string, ok bool) {
	if k == 0 || category == "" {
		return category, true
	}
	return strings.CutPrefix(category, w.parts[k].Sub.Name+"+")
}

// home is the innermost part to which a category belongs, by its name.
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
