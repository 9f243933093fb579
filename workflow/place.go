package workflow

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
)

// A Place is the position at which a reader found an item, for messages to users. Each task and each edge has its own
// Place, because a workflow may consist of several files. Items that a program created have the zero Place.
type Place struct {
	File string // name, as specified by the user
	Line int    // from 1; 0: the file as a whole
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Errorf returns an error of kind Invalid about the item at p. Texts in args are shortened with Short.
func (p Place) Errorf(format string, args ...any) error {
	shorten(args)
	return corral.ErrorAt(corral.Invalid, p.String(), format, args...)
}

// A Warning reports an unusual item in a file, if the meaning of the item is nevertheless clear.
type Warning struct {
	Place   Place
	Message string
}

func (w Warning) String() string { return w.Place.String() + ": " + w.Message }

// NameOf returns the name of a workflow whose file does not specify one: the file name without folders and extensions.
func NameOf(file string) string {
	base := path.Base(strings.ReplaceAll(file, "\\", "/"))
	name := strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), path.Ext(strings.TrimSuffix(base, ".gz")))
	return cmp.Or(strings.Trim(name, "./"), "workflow")
}

// Printable returns a text from a file in a form that is safe to display: quoted with escapes if it contains control
// characters, and shortened if it is long.
func Printable(text string) string {
	if r := []rune(text); len(r) > maxPrinted {
		text = string(r[:maxPrinted-1]) + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// Short returns a text from a file in a form suitable for a message, which means that a long text is shortened.
func Short(text string) string {
	if len(text) <= maxShort { // there are at most as many characters as bytes
		return text
	}
	if r := []rune(text[:maxShort]); len(r) > maxPrinted {
		return string(r[:maxPrinted-1]) + "…"
	}
	return text[:maxPrinted-1] + "…" // not UTF-8
}

// maxShort is the maximum length in bytes of a text in a message. Typical file names are shorter.
const maxShort = 500

// shorten shortens the texts among the arguments of a message.
func shorten(args []any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok && len(text) > maxShort {
			args[i] = Short(text)
		}
	}
}

// maxPrinted is the maximum number of characters of a displayed name.
const maxPrinted = 100
