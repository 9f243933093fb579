package task_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/task"
)

// What tasks are told is in the documentation, each with what it has.
func TestVariablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		task.RunVariable, task.IDVariable, task.AttemptVariable, task.CPUsVariable, task.NoteVariable,
		task.ElementVariable, task.EntryVariable, task.SubmitDirVariable,
	} {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("docs/tasks.md does not say what %s has", name)
		}
	}
}
