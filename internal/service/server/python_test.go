package server_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The Python client in examples/python uses only names that openapi.yaml has.
func TestPythonClientKnowsTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../examples/python/corral.py")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`(?m)^    "(\w+)": \("([A-Z]+)", "(.+)"\),$`).FindAllStringSubmatch(string(text), -1)
	if len(known) == 0 || len(known) != strings.Count(string(text), `": ("`) {
		t.Errorf("%d operations in its table can be read", len(known))
	}
	for _, k := range known {
		item := openAPIDoc(t).Paths.Value(k[3])
		if item == nil || item.GetOperation(k[2]) == nil || item.GetOperation(k[2]).OperationID != k[1] {
			t.Errorf("%s: the document has no %s %s", k[1], k[2], k[3])
		}
	}
}
