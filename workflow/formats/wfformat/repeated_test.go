package wfformat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No object with only the fields of the format is a false positive of mayRepeat, which would cost time.
func TestFieldsAreInDifferentClasses(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{
		reflect.TypeFor[specTask](), reflect.TypeFor[execTask](), reflect.TypeFor[command](), reflect.TypeFor[dataFile](),
		reflect.TypeFor[extension](), reflect.TypeFor[control](), reflect.TypeFor[script](), reflect.TypeFor[file14](),
		reflect.TypeFor[task14](),
	} {
		var all []string
		for name := range fieldTypes(of) {
			all = append(all, fmt.Sprintf(`%q: 0`, name))
		}
		if text := "{" + strings.Join(all, ",") + "}"; mayRepeat([]byte(text)) {
			t.Errorf("%v: %s", of, text)
		}
	}
}

// For any nesting of values, a key is found if and only if it is repeated.
func TestRepeatedKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		repeated := false
		text := drawValue(t, 0, &repeated)
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s is not JSON", text)
		}
		at, key, ok := repeatedKey([]byte(text))
		if ok != repeated {
			t.Fatalf("%s: %v, %q at %d", text, ok, key, at)
		}
		if ok && text[at] != '"' {
			t.Fatalf("%s: %q is not at %d", text, key, at)
		}
	})
}

func drawValue(t *rapid.T, depth int, repeated *bool) string {
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	if depth == 4 || kind == 0 {
		return rapid.SampledFrom([]string{`"a"`, `"\\"`, `"\"a\": 1"`, `"}{"`, "-1.5e3", "null", `""`}).Draw(t, "leaf")
	}
	n := rapid.IntRange(0, 4).Draw(t, "length")
	var elements []string
	seen := map[string]bool{}
	for range n {
		value := drawValue(t, depth+1, repeated)
		if kind > 1 {
			key := rapid.SampledFrom([]string{"a", "b", "A", "\\u0061", "", "é", "É", "k", "\u212a", `\"`, `\\`}).Draw(t, "key")
			fold := map[string]string{"A": "a", "\\u0061": "a", "É": "é", "\u212a": "k"}[key]
			if fold == "" {
				fold = key
			}
			*repeated = *repeated || seen[fold]
			seen[fold] = true
			value = `"` + key + `"` + rapid.SampledFrom([]string{":", " : ", "\n:"}).Draw(t, "colon") + value
		}
		elements = append(elements, value)
	}
	if kind == 1 {
		return "[" + strings.Join(elements, ", ") + "]"
	}
	return "{" + strings.Join(elements, ",\n") + "}"
}
