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

// Decode reads exactly one JSON object into the struct that v points to. It is stricter than encoding/json, which takes
// a name in any case, keeps the last of two values of one name, and makes 0 or "" of null: a client that sends one of
// these has made a mistake. The error names the field.
//
// Decode walks down the struct's type and lets json.Decoder split each object into raw values, so that it takes time in
// proportion to the body and goes no deeper than the struct does, whatever nesting arrives. (encoding/json/v2 will do
// most of it once it is no longer an experiment.)
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
// must be there: without this a missing one would pass as 0.
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

// fieldsOf returns the fields of a struct by their names in JSON; those of embedded structs count as its own, as
// encoding/json has it. Fields without a name of their own are not for requests.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f
		}
	}
	return fields
}

// object calls each with the members of a JSON object, in their order. Each value arrives raw: json.Decoder has checked
// that it is JSON, whatever is nested in it, but nothing has been made of it. So a value of the wrong type can be told
// from one that is not JSON, and is refused without descending into it.
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

// twice refuses the second value of a name. encoding/json would take the last one, and another reader of the same
// request, a proxy or an audit, might take the first.
func twice(place string) error { return corral.ErrorAt(corral.Invalid, place, "is given twice") }

// noField refuses a name that is no field's. The likeliest mistake is a wrong case, so the right name is in the
// message.
func noField(name string, fields map[string]reflect.StructField) error {
	for known := range fields {
		if strings.EqualFold(name, known) {
			return corral.ErrorAt(corral.Invalid, brief(name), "there is no such field; %s is one", known)
		}
	}
	return corral.ErrorAt(corral.Invalid, brief(name), "there is no such field")
}

// fill decodes a value, which messages call place, into v. Objects and arrays it takes apart itself, to find names that
// are given twice and to name the element that is wrong; what has no parts it leaves to encoding/json, whose messages
// speak of Go's types, and so says itself what was wanted. Only where v is a pointer does null mean the same as leaving
// the field out.
func fill(place string, value json.RawMessage, v reflect.Value) error {
	null := string(value) == "null"
	switch kind, isTime := v.Kind(), v.Type() == reflect.TypeFor[time.Time](); {
	case kind == reflect.Pointer && null:
		return nil
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(place, value, v.Elem())
	case null: // an element, which cannot be left out
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

// mapping decodes an object into a map, such as labels. Messages call its elements place.KEY.
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

// array decodes an array into a slice. Messages call its elements place[0], place[1] and so on.
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

// number decodes a number and checks it against the range of the field's name. It reads
// the number as a float first, so that 1e300 is told to be out of range rather than not to be a number; 1.0 in turn is
// in the range, but not what a field of whole numbers takes.
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
			"want %s in digits alone, not %.40s", wanted(place, v.Type()), value)
	}
	return nil
}

// isNull says what a field takes instead of null. A field with omitempty may be left out, which is what a client that
// sends null has in mind more often than not.
func isNull(name string, field reflect.StructField) error {
	hint := ""
	if tag := field.Tag.Get("json"); strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero") {
		hint = ", or leave it out"
	}
	return corral.ErrorAt(corral.Invalid, name, "null is not allowed: want %s%s", wanted(name, field.Type), hint)
}

// wanted says what a field of a type takes, in JSON's words rather than Go's, and with the range of a number: a person
// who reads the message should need no other page to mend the request.
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
	case reflect.Int64: // of millionths, such as money
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

// found says what a field has instead. It repeats text only where the field takes a time: any other may be a secret.
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

// brief is a name that a client made up, cut to what fits into a message.
func brief(name string) string { return fmt.Sprintf("%.80s", name) }
