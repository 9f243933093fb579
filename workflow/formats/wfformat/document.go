package wfformat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// A document is a JSON file that is read value by value, never as a whole, so that reading a large file requires little
// memory, and every error can name its line.
//
// A document is read at two levels. Potentially large objects and arrays are read token by token: each field by the
// function for its key (object), each element by a function that may lag behind the reading (array). At the level
// below, a value such as a task is decoded into a struct in one step (read). The strict decoder fails at a field that
// the struct lacks; then read decodes the same text again, leniently. This distinguishes an unknown field, which is
// only recorded, from a value of the wrong type, and finds the line of either. Files without unknown fields incur no
// additional cost.
type document struct {
	name    string
	dec     *json.Decoder
	lines   *lineReader
	unknown []unknownField // in order of first occurrence
}

// An unknownField is a field that the format does not define, with all its occurrences.
type unknownField struct {
	path  string
	at    workflow.Place // of the first occurrence
	count int
}

// A field reads the next value of the document; path is the path of that value.
type field func(path string) error

// fields maps the known keys of an object to the functions that read their values.
type fields map[string]field

// newDocument returns a document that reads r; name is the file name for errors, and mostOfValue is the maximum size of
// a value in bytes.
func newDocument(r io.Reader, name string, mostOfValue int64) *document {
	lines := &lineReader{r: r, most: mostOfValue}
	dec := json.NewDecoder(lines)
	dec.DisallowUnknownFields() // to detect unknown fields; see read
	return &document{name: name, lines: lines, dec: dec}
}

// object returns a field that reads an object with the known fields, each at most once and in any order. Other fields
// are skipped and recorded.
func (d *document) object(known fields) field {
	return func(path string) error {
		seen := make(map[string]bool)
		return d.within('{', '}', path, func() error {
			token, err := d.dec.Token()
			if err != nil {
				return d.broken(err)
			}
			key := token.(string)
			read, ok := known[key]
			if !ok {
				return d.skip(join(path, key))
			}
			if seen[key] {
				return d.here().Errorf("%s is given twice", join(path, key))
			}
			seen[key] = true
			return read(join(path, key))
		})
	}
}

// within calls next for each item between two delimiters.
func (d *document) within(left, right json.Delim, path string, next func() error) error {
	if err := d.delim(left, path); err != nil {
		return err
	}
	for d.dec.More() {
		if err := next(); err != nil {
			return err
		}
	}
	return d.delim(right, path)
}

// delim reads one delimiter. If the next token is not this delimiter, the value at path has the wrong type, and delim
// returns an error.
func (d *document) delim(want json.Delim, path string) error {
	token, err := d.dec.Token()
	if err != nil {
		return d.broken(err)
	}
	if token != want {
		kind := map[json.Delim]string{'{': "an object", '[': "an array"}[want]
		return d.here().Errorf("%s is not %s", cmp.Or(path, "the document"), kind)
	}
	return nil
}

// end checks that nothing follows the document.
func (d *document) end() error {
	_, err := d.dec.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.broken(err)
	}
	return d.here().Errorf("there is text after the end of the document")
}

// skip skips a value that the format does not define.
func (d *document) skip(path string) error {
	d.noteUnknown(path, d.here())
	return value(d, new(json.RawMessage))(path)
}

// noteUnknown counts a field that the format does not define. A file with a million tasks may contain such a field a
// million times; it is reported once.
func (d *document) noteUnknown(path string, at workflow.Place) {
	i := slices.IndexFunc(d.unknown, func(u unknownField) bool { return u.path == path })
	switch {
	case i >= 0:
		d.unknown[i].count++
	case len(d.unknown) < maxUnknown:
		d.unknown = append(d.unknown, unknownField{path, at, 1})
	}
}

// maxUnknown is the maximum number of distinct unknown fields that are recorded. A longer list would not be useful, and
// a malicious file may contain a million.
const maxUnknown = 100

// read reads one value into v and returns the place at which the value begins. The fields of v's structs are the known
// fields at path; read records all other fields.
func read[T any](d *document, path string, v *T) (at workflow.Place, err error) {
	before := d.dec.InputOffset()
	err = d.dec.Decode(v)
	after := d.dec.InputOffset()
	raw := bytes.TrimLeft(d.lines.between(before, after), " \t\r\n,:")
	if len(raw) == 0 { // no value was read: the text is invalid
		return workflow.Place{}, d.broken(err)
	}
	start := after - int64(len(raw))
	if at = d.at(start); err == nil {
		return at, d.unrepeated(path, raw, start)
	}
	var lenient T // v may be partially set
	if err := json.Unmarshal(raw, &lenient); err != nil {
		return at, d.mismatch(path, err, raw, reflect.TypeFor[T](), start)
	}
	if err := d.unrepeated(path, raw, start); err != nil {
		return at, err
	}
	*v = lenient
	return at, d.compare(path, raw, reflect.TypeFor[T](), start)
}

// unrepeated refuses a value that begins at start if an object in it has a repeated key.
func (d *document) unrepeated(path string, raw []byte, start int64) error {
	at, key, ok := repeatedKey(raw)
	if !ok {
		return nil
	}
	return d.at(start+int64(at)).Errorf("%s: an object has the field %q twice: remove one of them", path, key)
}

// value returns a field that reads a value into v, and ignores the place of the value.
func value[T any](d *document, v *T) field {
	return func(path string) error {
		_, err := read(d, path, v)
		return err
	}
}

// compare recursively records the fields of the object raw that a struct type lacks; raw begins at start. In a Corral
// extension it refuses such fields.
func (d *document) compare(path string, raw json.RawMessage, t reflect.Type, start int64) error {
	if t == reflect.TypeFor[*extension]() {
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(new(extension)); err != nil {
			return d.at(start).Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	var object map[string]json.RawMessage
	known := fieldTypes(t)
	if known == nil || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	inside := make(map[int64]string) // :: offset of a value → its name
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if known[strings.ToLower(name)] == nil {
			d.noteUnknown(join(path, name), d.at(start))
		} else {
			inside[start+offsetOf(raw, name, object[name])] = name
		}
	}
	for _, at := range slices.Sorted(maps.Keys(inside)) { // places must be looked up in the order of the text
		name := inside[at]
		if err := d.compare(join(path, name), object[name], known[strings.ToLower(name)], at); err != nil {
			return err
		}
	}
	return nil
}

// mismatch returns the error for a value that is valid JSON but cannot be decoded into t. The decoder does not always
// report which field is wrong, so mismatch searches for it recursively, field by field.
func (d *document) mismatch(path string, err error, raw json.RawMessage, t reflect.Type, start int64) error {
	offset := 0
	for {
		name, value, field, cause := culprit(raw[offset:], t)
		if cause == nil {
			break
		}
		path, t, err = join(path, name), field, cause
		offset += int(offsetOf(raw[offset:], name, value))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("found %s, want %s", wrong.Value, jsonKind(wrong.Type))
	}
	return d.at(start+int64(offset)).Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "json: "))
}

// offsetOf returns the offset of a field's value in the object's text.
func offsetOf(object []byte, name string, value json.RawMessage) int64 {
	at := max(0, bytes.Index(object, []byte(`"`+name+`"`)))
	return int64(at + max(0, bytes.Index(object[at:], value)))
}

// culprit returns the first field that cannot be decoded of the object at the beginning of text, together with the
// field's value, type and error. The error is nil if text does not begin with an object, or if all fields can be
// decoded.
func culprit(text []byte, t reflect.Type) (name string, value json.RawMessage, field reflect.Type, err error) {
	var object map[string]json.RawMessage
	known := fieldTypes(t)
	if known == nil || json.NewDecoder(bytes.NewReader(text)).Decode(&object) != nil {
		return "", nil, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if field := known[strings.ToLower(name)]; field != nil {
			if err := json.Unmarshal(object[name], reflect.New(field).Interface()); err != nil {
				return name, object[name], field, err
			}
		}
	}
	return "", nil, nil, nil
}

// fieldTypes returns a map from the JSON names of a struct's fields to their types; the names are in lower case,
// because encoding/json ignores case. For other types it returns nil.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := make(map[string]reflect.Type)
	for f := range t.Fields() {
		if f.Anonymous {
			maps.Copy(known, fieldTypes(f.Type))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[strings.ToLower(name)] = f.Type
	}
	return known
}

// jsonKind returns the name of the JSON type that corresponds to a Go type, for messages to users.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number in range"
}

// at returns the place, with the line, of an offset.
func (d *document) at(offset int64) workflow.Place {
	line, _ := d.lines.position(offset)
	return workflow.Place{File: d.name, Line: line}
}

// here returns the current place.
func (d *document) here() workflow.Place { return d.at(d.dec.InputOffset() - 1) }

// broken returns the error to report for a text that is not JSON, is too long, or cannot be read.
func (d *document) broken(err error) error {
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	_, isTooLong := errors.AsType[*input.TooLongError](err)
	switch {
	case errors.Is(err, errNotUTF8):
		return corral.ErrorAt(corral.Invalid, d.place(d.lines.bad), "%w", err)
	case errors.Is(err, errLongValue), errors.Is(err, errBlanks):
		return corral.ErrorAt(corral.Invalid, d.place(d.dec.InputOffset()), "%w", err)
	case isTooLong:
		return corral.ErrorAt(corral.Invalid, d.name, "the workflow is %w", err)
	case errors.Is(err, io.EOF) && d.lines.read == 0:
		return corral.ErrorAt(corral.Invalid, d.name, "the file is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corral.ErrorAt(corral.Invalid, d.place(d.lines.read-1), "the file ends before the end of the document")
	case isSyntax:
		return corral.ErrorAt(corral.Invalid, d.place(d.syntaxOffset(syntax)), "not JSON: %w", err)
	}
	return corral.ErrorAt(corral.Invalid, d.name, "reading: %w", err)
}

// place returns the line and the column of an offset, for errors in a text that is not JSON: a line alone may not be
// enough, because the whole file may be a single line.
func (d *document) place(offset int64) string {
	line, column := d.lines.position(max(0, offset))
	return fmt.Sprintf("%s:%d:%d", d.name, line, column)
}

// syntaxOffset returns the offset of the offending byte. The offset in the decoder's error is correct only for errors
// between values; inside a value it has a different origin, so the value is scanned again from its beginning, which is
// still the decoder's position.
func (d *document) syntaxOffset(err *json.SyntaxError) int64 {
	base := d.dec.InputOffset()
	if err.Offset == base {
		return base
	}
	rest, _ := io.ReadAll(d.dec.Buffered()) // a bytes.Reader: never fails
	if again, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(rest, new(json.RawMessage))); ok {
		return base + again.Offset - 1
	}
	return base
}

// join returns the path of a field.
func join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}
