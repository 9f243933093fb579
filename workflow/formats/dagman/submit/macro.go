package submit

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Limits on the expansion of one value. Without them, a value with macros that refer to each other could grow without
// end.
const (
	maxValueBytes = 1 << 20
	maxExpansions = 50_000
	maxDepth      = 50
	maxReference  = 16 << 10 // maximum bytes of one reference to a macro, including its default
)

var errLongValue = errors.New("a value is longer than 1 MiB when its macros are expanded")

// macros maps lower-case names to values.
type macros map[string]string

// An expander replaces the macros in one value.
type expander struct {
	job     *Proc // the job that defines the macros, and is charged
	left    int   // number of expansions left
	matched bool  // a $$(…) was found, which is replaced only by a match with a machine
}

// expand returns text with its macros replaced; matched reports whether the value contains a $$(…). It charges the
// bytes of the value, and the bytes of all texts that were searched for macros.
func (j *Proc) expand(text string) (value string, matched bool, err error) {
	if len(text) > maxValueBytes {
		return "", false, errLongValue
	}
	if !strings.Contains(text, "$") {
		return text, false, j.Charge(len(text))
	}
	x := expander{job: j, left: maxExpansions}
	if value, err = x.expand(text, 0); err == nil {
		err = j.Charge(len(value))
	}
	return value, x.matched, err
}

// expand returns text with its macros replaced; depth is the number of macros within which text is nested.
func (x *expander) expand(text string, depth int) (string, error) {
	if depth > maxDepth {
		return "", fmt.Errorf("a macro refers to itself, or to others more than %d deep", maxDepth)
	}
	if err := x.job.Charge(statementBytes + len(text)); err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if out.Len() > maxValueBytes {
			return "", errLongValue
		}
		if !found {
			return out.String(), nil
		}
		if x.left--; x.left < 0 {
			return "", fmt.Errorf("a value takes more than %d expansions of macros", maxExpansions)
		}
		value, size, err := x.reference(rest, depth)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = rest[size:]
	}
}

// reference returns the value of the reference at the beginning of text, which follows a dollar sign, and the size of
// the reference in bytes. If text does not begin with a reference, the value is the dollar sign itself.
func (x *expander) reference(text string, depth int) (value string, size int, err error) {
	if strings.HasPrefix(text, "$(") {
		return x.whenMatched(text)
	}
	open := 0
	for open < len(text) && inName(text[open]) {
		open++
	}
	length := closing(text[open:])
	if length == 0 {
		return "$", 0, x.chargeSearch(text[open:])
	}
	function, body := text[:open], text[open+1:open+length-1]
	size = open + length
	name, otherwise, defaulted := strings.Cut(body, ":")
	switch {
	case function != "":
		value, err = x.call(function, body, depth)
		return value, size, err
	case !IsName(name):
		return "$", 0, nil
	case strings.EqualFold(name, "DOLLAR"):
		return "$", size, nil
	}
	set, ok := x.job.macros[strings.ToLower(name)]
	if (!ok || set == "") && defaulted {
		set = otherwise
	}
	value, err = x.expand(set, depth+1)
	return value, size, err
}

// chargeSearch charges an unsuccessful search for the end of a parenthesis at the beginning of text, because the next
// reference may search the same bytes again.
func (x *expander) chargeSearch(text string) error {
	if !strings.HasPrefix(text, "(") {
		return nil
	}
	return x.job.Charge(min(len(text), maxReference))
}

// whenMatched returns $$(…) unchanged, except for $$(DOLLARDOLLAR), which condor_submit itself replaces.
func (x *expander) whenMatched(text string) (value string, size int, err error) {
	length := closing(text[1:])
	if length == 0 {
		return "$", 0, x.chargeSearch(text[1:])
	}
	if strings.EqualFold(text[2:length], "DOLLARDOLLAR") {
		return "$$", length + 1, nil
	}
	x.matched = true
	return "$" + text[:length+1], length + 1, nil
}

// call returns the value of a macro function.
func (x *expander) call(function, body string, depth int) (string, error) {
	argument, more, _ := strings.Cut(body, ",")
	name := strings.TrimSpace(argument)
	text, err := x.expand(x.job.macros[strings.ToLower(name)], depth+1)
	if err != nil {
		return "", err
	}
	switch upper := strings.ToUpper(function); {
	case upper == "BASENAME":
		if cut := strings.TrimSpace(more); cut != "" {
			return strings.TrimSuffix(path.Base(text), cut), nil
		}
		return path.Base(text), nil
	case upper == "DIRNAME":
		dir, _ := path.Split(text)
		return dir, nil
	case upper == "INT" && more == "":
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || f < -1<<62 || f > 1<<62 {
			return "", fmt.Errorf("$INT(%s): %.40q is not a number", body, text)
		}
		return strconv.FormatInt(int64(f), 10), nil
	case upper[0] == 'F' && strings.Trim(function[1:], "pdnxqb") == "":
		return filePart(text, function[1:]), nil
	}
	return "", fmt.Errorf("the macro function $%s is not supported", function)
}

// filePart returns the parts of a path that letters select: p selects the folder, d the last part of the folder, n the
// name without the extension, and x the extension; q quotes the result, and b omits the slash of a folder and the dot
// of an extension.
func filePart(name, letters string) string {
	dir, base := path.Split(name)
	extension := path.Ext(base)
	bare := strings.Contains(letters, "b")
	var parts string
	if strings.Contains(letters, "p") {
		parts += dir
	} else if strings.Contains(letters, "d") && dir != "" {
		parts += path.Base(dir) + "/"
	}
	if bare {
		parts = strings.TrimSuffix(parts, "/")
	}
	if strings.Contains(letters, "n") {
		parts += strings.TrimSuffix(base, extension)
	}
	if strings.Contains(letters, "x") {
		if bare && !strings.Contains(letters, "n") {
			extension = strings.TrimPrefix(extension, ".")
		}
		parts += extension
	}
	if strings.Trim(letters, "qb") == "" {
		parts = name
	}
	if strings.Contains(letters, "q") {
		return `"` + parts + `"`
	}
	return parts
}

// closing returns the size in bytes of the parenthesis at the beginning of text, including both ends. It returns 0 if
// text does not begin with a parenthesis, or if the parenthesis is not closed.
func closing(text string) int {
	if !strings.HasPrefix(text, "(") {
		return 0
	}
	depth := 0
	for i := range min(len(text), maxReference) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// IsName reports whether s is a valid name of a macro or an attribute.
func IsName(s string) bool {
	for i := range len(s) {
		if !inName(s[i]) {
			return false
		}
	}
	return s != ""
}

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.'
}

// withOwn returns the new value of a macro, with its references to the same macro replaced by the old value.
func withOwn(name, value, had string) (string, error) {
	var out strings.Builder
	for {
		if out.Len()+len(value) > maxValueBytes {
			return "", errLongValue
		}
		i := ownIndex(name, value)
		if i < 0 {
			out.WriteString(value)
			return out.String(), nil
		}
		out.WriteString(value[:i])
		out.WriteString(had)
		value = value[i+len("$()")+len(name):]
	}
}

// ownIndex returns the index of the first reference to the macro name in value, or -1 if there is none.
func ownIndex(name, value string) int {
	for at := 0; ; {
		i := strings.Index(value[at:], "$(")
		if i < 0 {
			return -1
		}
		i += at
		at = i + len("$(")
		end := at + len(name)
		if end < len(value) && value[end] == ')' && strings.EqualFold(value[at:end], name) &&
			(i == 0 || value[i-1] != '$') {
			return i
		}
	}
}
