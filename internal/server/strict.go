package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// strictly decodes exactly one JSON value without unknown fields. Its errors name the field.
func strictly(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return corral.ErrorAt(corral.Invalid, "body", "more than one JSON value")
		}
		return nil
	}
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return corral.ErrorAt(corral.Invalid, wrongType.Field, "want %s, not a JSON %s", wrongType.Type, wrongType.Value)
	case wrongType != nil:
		return corral.ErrorAt(corral.Invalid, "body", "want a JSON object, not a JSON %s", wrongType.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corral.ErrorAt(corral.Invalid, "body", "ends before the JSON value does")
	}
	if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok { // encoding/json has no type for it
		return corral.ErrorAt(corral.Invalid, strings.Trim(field, `"`), "there is no such field")
	}
	return corral.ErrorAt(corral.Invalid, culprit(body, v), "%w", err)
}

// culprit returns the field whose value v does not take, or body: encoding/json does not say it when a
// type's own decoding fails.
func culprit(body []byte, v any) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return "body"
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		alone, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil && json.Unmarshal(alone, reflect.New(reflect.TypeOf(v).Elem()).Interface()) != nil {
			return name
		}
	}
	return "body"
}
