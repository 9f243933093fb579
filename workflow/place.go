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

// A Place is where a reader found something, so that a person finds it again. Each task and each edge has its own: a
// workflow may be written down in several files. The zero Place belongs to what a program made.
type Place struct {
	File string // as the user named it
	Line int    // from 1; 0: the file as a whole
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Errorf returns an error of kind Invalid about what stands at p. Texts among args are cut as by Short.
func (p Place) Errorf(format string, args ...any) error {
	shorten(args)
	return corral.ErrorAt(corral.Invalid, p.String(), format, args...)
}

// A Warning tells of something odd in a file whose meaning is clear nevertheless.
type Warning struct {
	Place   Place
	Message string
}

func (w Warning) String() string { return w.Place.String() + ": " + w.Message }

// NameOf is what a workflow is called whose file gives it no name: as its file, without folders and endings.
func NameOf(file string) string {
	base := path.Base(strings.ReplaceAll(file, "\\", "/"))
	name := strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), path.Ext(strings.TrimSuffix(base, ".gz")))
	return cmp.Or(strings.Trim(name, "./"), "workflow")
}

// Printable is a text from a file as people may see it: in quotes, with escapes, if it would steer a terminal, and
// cut if it is long.
func Printable(text string) string {
	if r := []rune(text); len(r) > maxPrinted {
		text = string(r[:maxPrinted-1]) + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// Short is a text from a file as a sentence about it may hold it: cut if it is long.
func Short(text string) string {
	if len(text) <= maxShort { // bytes, which are not fewer
		return text
	}
	if r := []rune(text[:maxShort]); len(r) > maxPrinted {
		return string(r[:maxPrinted-1]) + "…"
	}
	return text[:maxPrinted-1] + "…" // not UTF-8
}

// maxShort is how long a text in a sentence may be in bytes. Whole names of files are below it.
const maxShort = 500

// shorten cuts the texts among the arguments of a sentence.
func shorten(args []any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok && len(text) > maxShort {
			args[i] = Short(text)
		}
	}
}

// maxPrinted is how many characters of a name people are shown.
const maxPrinted = 100
