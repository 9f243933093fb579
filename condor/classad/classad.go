// Package classad reads and writes ClassAds, in which HTCondor says everything of jobs, slots and daemons: an [Ad] is a
// list of named values, of which some are expressions that only HTCondor evaluates.
//
// ClassAds have two syntaxes. The old one is a line "name = value" each, as in submit descriptions and configuration,
// where a backslash in a string is itself; the new one has brackets, semicolons and the escapes of C. HTCondor's
// commands print a third, JSON, in which expressions hide in strings. The package writes values in the first two and
// reads back their literals; of JSON it reads what commands print.
package classad

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An Ad is one ClassAd: a map from attribute to value, which is a string, int64, float64, bool, []any of
// such values, a nested Ad, or an [Expr]. Names are kept as they were written; HTCondor, and the getters,
// find them whatever their case.
type Ad map[string]any

// An Expr is the text of an expression that has to be evaluated to have a value.
type Expr string

// The two values that ClassAds have and Go has not. An expression has the value undefined if it names an attribute
// that an ad lacks, and error if an operator does not fit its operands.
const (
	Undefined Expr = "undefined"
	Error     Expr = "error"
)

// Lookup returns the value of an attribute, whatever the case of its name. The name as it is written is tried first,
// which is enough for most.
func (a Ad) Lookup(name string) (any, bool) {
	if v, ok := a[name]; ok {
		return v, true
	}
	for k, v := range a {
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	return nil, false
}

// Text returns a string attribute; ok is false if it is absent or not a string.
func (a Ad) Text(name string) (s string, ok bool) {
	v, _ := a.Lookup(name)
	s, ok = v.(string)
	return s, ok
}

// Int returns a number as an integer, rounded towards zero; ok is false if the attribute is absent, not a number, or
// too large.
func (a Ad) Int(name string) (n int64, ok bool) {
	switch v, _ := a.Lookup(name); v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), math.Abs(v) < 1<<63
	}
	return 0, false
}

// Bool returns a boolean; ok is false if the attribute is absent or not a boolean.
func (a Ad) Bool(name string) (b, ok bool) {
	v, _ := a.Lookup(name)
	b, ok = v.(bool)
	return b, ok
}

// FormatOld writes a value as an expression in the old syntax, which submit descriptions, configuration
// and condor_advertise use. A string with a line break or NUL has no old syntax that every reader takes: such
// bytes become spaces.
func FormatOld(v any) string { return format(v, quoteOld) }

// FormatNew writes a value as an expression in the new syntax, which nested ads and -constraint use.
func FormatNew(v any) string { return format(v, quoteNew) }

// format writes a value with one syntax's strings, also within lists and ads. What is not the value of an ad is
// undefined.
func format(v any, quote func(string) string) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case Expr:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v)
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = format(item, quote)
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case Ad:
		var s strings.Builder
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s.WriteString(name + " = " + format(v[name], quote) + "; ")
		}
		return "[ " + s.String() + "]"
	}
	return string(Undefined)
}

// formatFloat writes f so that it is read as a real number again, which needs a point or an exponent.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return `real("NaN")`
	case math.IsInf(f, 1):
		return `real("INF")`
	case math.IsInf(f, -1):
		return `real("-INF")`
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// quoteOld writes a string of the old syntax. There a backslash is itself, except before a double quote;
// one at the end would therefore eat the closing quote, and is followed by a space.
func quoteOld(s string) string {
	s = strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(s)
	if strings.HasSuffix(s, `\`) {
		s += " "
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

// quoteNew writes a string of the new syntax, with the escapes of C. Strings of ClassAds have no NUL: it becomes a
// space.
func quoteNew(s string) string {
	var q strings.Builder
	q.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			q.WriteString(`\` + string(c))
		case c == '\n':
			q.WriteString(`\n`)
		case c == 0:
			q.WriteByte(' ')
		case c < ' ':
			fmt.Fprintf(&q, `\%03o`, c)
		default:
			q.WriteByte(c)
		}
	}
	q.WriteByte('"')
	return q.String()
}

// ParseOld reads a value in the old syntax. What is not a literal becomes an [Expr].
func ParseOld(s string) any { return parse(s, unquoteOld) }

// ParseNew reads a value in the new syntax. Lists, nested ads and whatever is not a literal become an [Expr].
func ParseNew(s string) any { return parse(s, unquoteNew) }

// parse reads a value: a word that has a meaning, a string, a number, or else an expression.
func parse(s string, unquote func(string) (string, bool)) any {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "true":
		return true
	case "false":
		return false
	case "undefined":
		return Undefined
	case "error":
		return Error
	}
	if text, ok := unquote(s); ok {
		return text
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	// ParseFloat takes more than numbers: Inf, NaN and hexadecimal floats are expressions to HTCondor.
	if s != "" && strings.Trim(s, "+-.0123456789eE") == "" {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	return Expr(s)
}

// unquoteOld is the inverse of quoteOld; ok is false if s is not one string.
func unquoteOld(s string) (text string, ok bool) {
	inner, ok := within(s)
	if !ok {
		return "", false
	}
	plain := strings.ReplaceAll(inner, `\"`, "")
	return strings.ReplaceAll(inner, `\"`, `"`), !strings.Contains(plain, `"`) && !strings.HasSuffix(inner, `\`)
}

// unquoteNew is the inverse of quoteNew; ok is false if s is not one string, but an expression that begins and ends
// with strings.
func unquoteNew(s string) (text string, ok bool) {
	inner, ok := within(s)
	if !ok {
		return "", false
	}
	var out strings.Builder
	for len(inner) > 0 {
		if inner[0] == '"' {
			return "", false
		}
		if inner[0] != '\\' {
			out.WriteByte(inner[0])
			inner = inner[1:]
			continue
		}
		c, size := unescape(inner)
		if size == 0 {
			return "", false
		}
		out.WriteByte(c)
		inner = inner[size:]
	}
	return out.String(), true
}

// within returns what stands between double quotes; ok is false if the text does not begin and end with them.
func within(s string) (inner string, ok bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// unescape reads the escape at the start of s and its size, 0 if there is none.
func unescape(s string) (c byte, size int) {
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`abfnrtv\"'?`, s[1]); i >= 0 {
		return "\a\b\f\n\r\t\v\\\"'?"[i], 2
	}
	// Up to three octal digits, as in C.
	size = 1
	for size < 4 && size < len(s) && s[size] >= '0' && s[size] <= '7' {
		size++
	}
	n, err := strconv.ParseUint(s[1:size], 8, 8)
	if err != nil {
		return 0, 0
	}
	return byte(n), size
}
