package workflow_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral/workflow"
)

func TestNames(t *testing.T) {
	t.Parallel()
	names, got := workflow.Names{}, []string{}
	for _, name := range []string{"a", "a", "a_3", "a", "a_2", "b"} {
		got = append(got, names.Take(name))
	}
	if got, want := strings.Join(got, " "), "a a_2 a_3 a_4 a_2_2 b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
