package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// Decode reads exactly one JSON object into the struct that v points to. It is stricter than encoding/json, which
// ignores the case of names, keeps the last of several values of a name, and turns null into 0 or "": a client that
// sends such input has made a mistake. The error names the field.
//
// Decode follows the struct's type and uses json.Decoder to split each object into raw values. So its time is
// proportional to the length of the body, and it descends no deeper than the struct, regardless of the nesting of the
// body. (encoding/json/v2 will do most of this once it is no longer experimental.)
func Decode(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	err := structure("body", dec, reflect.ValueOf(v).Elem())
	switch _, told := errors.AsType[*corral.Error](err); {
	case told:
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corral.ErrorAt(corral.Invalid, "body", "ends before the JSON value does")
	case err != nil:
		return corral.ErrorAt(corral.Invalid, "body", "%w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return corral.ErrorAt(corral.Invalid, "body", "more than one JSON value")
	}
	return nil
}

// structure decodes the next object of dec, which messages call place, into a struct. A number whose range excludes 0
// is required: otherwise a missing number would pass as 0.
func structure(place string, dec *json.Decoder, v reflect.Value) error {
	fields := fieldsOf(v.Type())
	given := map[string]bool{}
	err := object(place, dec, func(name string, value json.RawMessage) error {
		field, known := fields[name]
		if !known {
			return noField(name, fields)
		}
		if given[name] {
			return twice(name)
		}
		given[name] = true
		if string(value) == "null" && field.Type.Kind() != reflect.Pointer {
			return isNull(name, field)
		}
		return fill(name, value, v.FieldByIndex(field.Index))
	})
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if r := ranges[name]; err == nil && !given[name] && !r.has(0) {
			err = corral.ErrorAt(corral.Invalid, name, "missing: want %s", wanted(name, fields[name].Type))
		}
	}
	return err
}

// fieldsOf returns the fields of a struct by their names in JSON, including the fields of embedded structs, as
// encoding/json does. Fields without a name in their tag are not part of requests.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f
		}
	}
	return fields
}

// object calls each with the members of a JSON object, in order. Values are raw: json.Decoder has checked that they are
// valid JSON but has not decoded them. So a value of the wrong type can be distinguished from invalid JSON, and is
// refused without descending into it.
func object(place string, dec *json.Decoder, each func(name string, value json.RawMessage) error) error {
	begin, err := dec.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return corral.ErrorAt(corral.Invalid, place, "want a JSON object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := each(name.(string), value); err != nil { // the decoder returns a member's name as a string or fails
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// twice refuses the second value of a name. encoding/json would use the last one, but another reader of the same
// request, such as a proxy or an audit, might use the first.
func twice(place string) error { return corral.ErrorAt(corral.Invalid, place, "is given twice") }

// noField refuses an unknown name. The most likely mistake is the wrong case, so the message contains the correct name.
func noField(name string, fields map[string]reflect.StructField) error {
	for known := range fields {
		if strings.EqualFold(name, known) {
			return corral.ErrorAt(corral.Invalid, brief(name), "there is no such field; %s is one", known)
		}
	}
	return corral.ErrorAt(corral.Invalid, brief(name), "there is no such field")
}

// fill decodes a value, which messages call place, into v. It splits objects and arrays itself, to find duplicate names
// and to name the invalid element. It decodes other values with encoding/json, but with its own error messages, because
// those of encoding/json contain Go's types. null means the same as an omitted field only if v is a pointer.
func fill(place string, value json.RawMessage, v reflect.Value) error {
	null := string(value) == "null"
	switch kind, isTime := v.Kind(), v.Type() == reflect.TypeFor[time.Time](); {
	case kind == reflect.Pointer && null:
		return nil
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(place, value, v.Elem())
	case null: // an element, which cannot be omitted
		return corral.ErrorAt(corral.Invalid, place, "null is not allowed: want %s", wanted(place, v.Type()))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(value)
		return nil
	case kind == reflect.Int, kind == reflect.Int64, kind == reflect.Uint64, kind == reflect.Float64:
		return number(place, value, v)
	case value[0] == '{' && kind == reflect.Struct && !isTime:
		return structure(place, json.NewDecoder(bytes.NewReader(value)), v)
	case value[0] == '{' && kind == reflect.Map:
		return mapping(place, value, v)
	case value[0] == '[' && kind == reflect.Slice:
		return array(place, value, v)
	}
	if json.Unmarshal(value, v.Addr().Interface()) != nil {
		return corral.ErrorAt(corral.Invalid, place, "want %s, not %s", wanted(place, v.Type()), found(value, v.Type()))
	}
	return nil
}

// mapping decodes an object into a map, such as labels. Messages refer to its elements as place.KEY.
func mapping(place string, value json.RawMessage, v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	return object(place, json.NewDecoder(bytes.NewReader(value)), func(name string, value json.RawMessage) error {
		key := reflect.ValueOf(name)
		if v.MapIndex(key).IsValid() {
			return twice(place + "." + brief(name))
		}
		element := reflect.New(v.Type().Elem()).Elem()
		err := fill(place+"."+brief(name), value, element)
		v.SetMapIndex(key, element)
		return err
	})
}

// array decodes an array into a slice. Messages refer to its elements as place[0], place[1] and so on.
func array(place string, value json.RawMessage, v reflect.Value) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(value, &elements); err != nil {
		return err // unreachable: it is JSON, and an array
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if err := fill(fmt.Sprintf("%s[%d]", place, i), element, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// number decodes a number and checks it against the range of the field's name. It first reads the number as a float, so
// that 1e300 is reported as out of range rather than as not a number; 1.0, however, is in the range but not valid in a
// field of whole numbers.
func number(place string, value json.RawMessage, v reflect.Value) error {
	r := ranges[place]
	n, noNumber := strconv.ParseFloat(string(value), 64)
	err := json.Unmarshal(value, v.Addr().Interface())
	switch tooLarge := errors.Is(noNumber, strconv.ErrRange); {
	case noNumber != nil && !tooLarge:
		return corral.ErrorAt(corral.Invalid, place, "want %s, not %s", wanted(place, v.Type()), found(value, v.Type()))
	case tooLarge || !r.has(n):
		return r.outside(place, v, value, err)
	case err != nil:
		return corral.ErrorAt(corral.Invalid, place,
			"want %s, in digits only, not %.40s", wanted(place, v.Type()), value)
	}
	return nil
}

// isNull returns the error for a null value. A field with omitempty may be omitted, which is usually what a client that
// sends null intends.
func isNull(name string, field reflect.StructField) error {
	hint := ""
	if tag := field.Tag.Get("json"); strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero") {
		hint = ", or leave it out"
	}
	return corral.ErrorAt(corral.Invalid, name, "null is not allowed: want %s%s", wanted(name, field.Type), hint)
}

// wanted describes the values that a field of a type accepts, in JSON's terms rather than Go's, and with the range of a
// number, so that users can correct the request from the message alone.
func wanted(place string, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return "a JSON document"
	case reflect.TypeFor[time.Time]():
		return "a time such as 2026-01-31T08:00:00Z"
	case reflect.TypeFor[corral.Seconds]():
		return "a number of seconds " + ranges[place].String()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Uint64:
		return "a whole number " + ranges[place].String()
	case reflect.Float64:
		return "a number " + ranges[place].String()
	case reflect.Int64: // a number of millionths, such as money
		return "a decimal number " + ranges[place].String() + " with at most six digits behind the point"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a string"
}

// found describes the value that was found. It repeats text only if the field accepts a time: other text may be a
// secret.
func found(value json.RawMessage, t reflect.Type) string {
	switch {
	case value[0] == '{':
		return "an object"
	case value[0] == '[':
		return "an array"
	case value[0] == '"' && t != reflect.TypeFor[time.Time]():
		return "a string"
	}
	return fmt.Sprintf("%.40s", value)
}

// brief returns a name chosen by a client, truncated to fit into a message.
func brief(name string) string { return fmt.Sprintf("%.80s", name) }
