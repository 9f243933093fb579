package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Dice are a fuzzer's bytes that decide how a request is changed. When they are used up nothing more is changed, so
// empty dice leave it unchanged.
type dice []byte

func (d *dice) roll() int {
	if len(*d) == 0 {
		return 0
	}
	n := int((*d)[0])
	*d = (*d)[1:]
	return n
}

// odd lists values that may be invalid for any field, as they appear in JSON or in what should be JSON.
var odd = []string{
	`null`, `true`, `""`, `"1"`, `" "`, `-1`, `0`, `-0`, `1.5`, `1e400`, `1e-400`, `1e18`, `9223372036854775808`, `NaN`, `Infinity`, `+1`,
	`"\xff\xfe"`, `"\u0000"`, `"\ud800"`, `"` + "\xff" + `"`, `"../../etc/passwd"`, `"%00"`, `"a\nb"`, `"file:///dev/zero"`, `"ssh://-oProxyCommand=x"`,
	`"2026-01-01T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59+23:59"`, `"until=tomorrow"`, `[]`, `{}`, `[null]`, `{"": null}`, `[{}, []]`, `'a'`, ``,
}

// value writes a value, or something in its place.
func (d *dice) value(b *bytes.Buffer, v any, schema *openapi3.Schema) {
	switch n := d.roll(); {
	case n == 250:
		depth := 1 + d.roll()*60
		b.WriteString(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		return
	case n == 251:
		depth := 1 + d.roll()*60
		b.WriteString(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
		return
	case n == 252:
		b.WriteString(`"` + strings.Repeat("a", 1<<(d.roll()%18)) + `"`)
		return
	case n == 253:
		b.WriteString(strings.Repeat("9", 1+d.roll()*4))
		return
	case n == 254 && schema != nil:
		d.value(b, d.like(schema, 0), nil)
		return
	case n >= 200 && n < 250:
		b.WriteString(odd[d.roll()%len(odd)])
		return
	}
	switch v := v.(type) {
	case map[string]any:
		d.object(b, v, schema)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			d.value(b, e, nil)
		}
		b.WriteByte(']')
	default:
		text, _ := json.Marshal(v) // it came from JSON
		b.Write(text)
	}
}

// object writes an object: one of its fields may be left out or duplicated; a documented or an unknown field may be
// added.
func (d *dice) object(b *bytes.Buffer, v map[string]any, schema *openapi3.Schema) {
	first := true
	field := func(name string, v any, schema *openapi3.Schema) {
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(b, "%q:", name)
		d.value(b, v, schema)
	}
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(v)) {
		within := property(schema, name)
		switch n := d.roll(); {
		case n >= 240 && n < 245:
			continue
		case n == 245:
			field(strings.ToUpper(name), v[name], nil)
		case n == 246:
			field(name, v[name], within)
		}
		field(name, v[name], within)
	}
	if d.roll() > 100 && schema != nil && len(schema.Properties) > 0 {
		names := slices.Sorted(maps.Keys(schema.Properties))
		for range 1 + d.roll()%4 {
			name := names[d.roll()%len(names)]
			field(name, d.like(schema.Properties[name].Value, 0), schema.Properties[name].Value)
		}
	}
	if d.roll() > 240 {
		field("nobody has this", 1, nil)
	}
	b.WriteByte('}')
}

func property(schema *openapi3.Schema, name string) *openapi3.Schema {
	if schema == nil || schema.Properties[name] == nil {
		return nil
	}
	return schema.Properties[name].Value
}

// like creates a value that more or less conforms to the document.
func (d *dice) like(s *openapi3.Schema, depth int) any {
	switch n := d.roll(); {
	case s == nil || depth > 4:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[n%len(s.Enum)]
	case s.Type == nil:
		return n
	case s.Type.Includes(openapi3.TypeInteger), s.Type.Includes(openapi3.TypeNumber):
		ends := []float64{float64(n), 0, 1, 2, 0.001, 1e15}
		if s.Min != nil {
			ends = append(ends, *s.Min, *s.Min-1)
		}
		if s.Max != nil {
			ends = append(ends, *s.Max, *s.Max+1)
		}
		return json.Number(strconv.FormatFloat(ends[d.roll()%len(ends)], 'f', -1, 64))
	case s.Type.Includes(openapi3.TypeBoolean):
		return n%2 == 1
	case s.Type.Includes(openapi3.TypeString):
		return []string{"a", "1", "", "a b", "new", "never", "forever", "3", "horizontal=2", "/srv/a", "t=1", "ü"}[n%12]
	case s.Type.Includes(openapi3.TypeArray):
		list := []any{}
		for range n % 4 {
			list = append(list, d.like(s.Items.Value, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if d.roll()%2 == 1 {
			object[name] = d.like(s.Properties[name].Value, depth+1)
		}
	}
	return object
}

// body creates a body from an example, or an empty one if there is none.
func (d *dice) body(example string, schema *openapi3.Schema) string {
	if example == "" && (schema == nil || d.roll() < 200) {
		return ""
	}
	decoder := json.NewDecoder(strings.NewReader(example))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		v = map[string]any{}
	}
	var b bytes.Buffer
	if d.value(&b, v, schema); d.roll() > 250 {
		b.WriteString("{}")
	}
	if n := d.roll(); n > 240 && b.Len() > 0 {
		b.Truncate(d.roll() * b.Len() / 256)
	}
	return b.String()
}
