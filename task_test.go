package corral_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// The documentation describes every variable of a task, with its content.
func TestVariablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		corral.RunVariable, corral.IDVariable, corral.AttemptVariable, corral.CPUsVariable, corral.NoteVariable,
		corral.ElementVariable, corral.EntryVariable, corral.SubmitDirVariable,
	} {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("docs/tasks.md does not say what %s has", name)
		}
	}
}
