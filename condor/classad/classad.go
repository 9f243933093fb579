// Package classad reads and writes ClassAds, in which HTCondor describes jobs, slots and daemons. An [Ad] is a list of
// named values, some of which are expressions that only HTCondor evaluates.
//
// ParseAds reads the ads that HTCondor's commands print. An Ad's methods return its values by type: Int, Text, Bool.
//
// ClassAds have two syntaxes. The old one has lines "name = value", as in submit descriptions and configuration, where
// a backslash in a string is literal; the new one has brackets, semicolons and the escapes of C. HTCondor's commands
// print a third, JSON, in which expressions are encoded as strings. The package writes values in the first two and
// reads back their literals; it also reads the JSON of commands.
package classad

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An Ad is one ClassAd: a map from attributes to values. A value is a string, int64, float64, bool, []any of such
// values, a nested Ad, or an [Expr]. Names keep their spelling; HTCondor and the getters ignore their case.
type Ad map[string]any

// An Expr is the text of an expression that must be evaluated to obtain a value.
type Expr string

// The two values of ClassAds that Go lacks. An expression has the value undefined if it names a missing attribute, and
// error if an operator does not fit its operands.
const (
	Undefined Expr = "undefined"
	Error     Expr = "error"
)

// Lookup returns the value of an attribute, ignoring the case of its name. It tries the exact name first, which usually
// suffices.
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

// FormatOld formats a value as an expression in the old syntax, which submit descriptions, configuration and
// condor_advertise use. Line breaks and NULs in strings become spaces, because the old syntax has no form for them that
// every reader accepts.
func FormatOld(v any) string { return format(v, quoteOld) }

// FormatNew formats a value as an expression in the new syntax, which nested ads and -constraint use.
func FormatNew(v any) string { return format(v, quoteNew) }

// format formats a value with the strings of one syntax, including those within lists and ads. A value of any other
// type becomes undefined.
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

// formatFloat formats f so that it is parsed as a real number, which requires a point or an exponent.
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

// quoteOld quotes a string in the old syntax, in which a backslash is literal except before a double quote. A backslash
// at the end would therefore escape the closing quote, so a space is added.
func quoteOld(s string) string {
	s = strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(s)
	if strings.HasSuffix(s, `\`) {
		s += " "
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

// quoteNew quotes a string in the new syntax, with the escapes of C. Strings of ClassAds cannot contain NUL, which
// becomes a space.
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

// ParseOld parses a value in the old syntax. A text that is not a literal becomes an [Expr].
func ParseOld(s string) any { return parse(s, unquoteOld) }

// ParseNew parses a value in the new syntax. A list, a nested ad or any other non-literal becomes an [Expr].
func ParseNew(s string) any { return parse(s, unquoteNew) }

// parse parses a value: a keyword, a string, a number, or otherwise an expression.
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
	// ParseFloat accepts more than numbers: Inf, NaN and hexadecimal floats are expressions to HTCondor.
	if s != "" && strings.Trim(s, "+-.0123456789eE") == "" {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	return Expr(s)
}

// unquoteOld is the inverse of quoteOld; ok is false if s is not a single string.
func unquoteOld(s string) (text string, ok bool) {
	inner, ok := within(s)
	if !ok {
		return "", false
	}
	plain := strings.ReplaceAll(inner, `\"`, "")
	return strings.ReplaceAll(inner, `\"`, `"`), !strings.Contains(plain, `"`) && !strings.HasSuffix(inner, `\`)
}

// unquoteNew is the inverse of quoteNew; ok is false if s is not a single string, but an expression that begins and
// ends with strings.
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

// within returns the text between double quotes; ok is false if s does not begin and end with them.
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
