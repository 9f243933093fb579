package wfformat

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The schema for users and editors has exactly the fields that are read and written, each with the same type, and
// allows no others.
func TestExtensionMatchesItsSchema(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/x-corral.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Open       bool `json:"additionalProperties"`
		Properties map[string]struct {
			Type        string
			Description string
		}
	}
	schema.Open = true
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Open {
		t.Error("the schema allows additional properties")
	}
	samples := map[string]string{"integer": "1", "number": "1.5", "string": `"s"`, "boolean": "true", "object": `{}`}
	var names []string
	for field := range reflect.TypeFor[extension]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		property, ok := schema.Properties[name]
		if !ok || property.Description == "" {
			t.Errorf("%s has no description in the schema", name)
			continue
		}
		for kind, sample := range samples {
			err := json.Unmarshal([]byte(`{"`+name+`": `+sample+`}`), new(extension))
			if fits := kind == property.Type || kind == "integer" && property.Type == "number"; fits != (err == nil) {
				t.Errorf("%s of type %s: %s is read with %v", name, property.Type, sample, err)
			}
		}
	}
	for name := range schema.Properties {
		if !slices.Contains(names, name) {
			t.Errorf("the schema's %s is unknown to the reader", name)
		}
	}
}
