package follow

import (
	"strings"
	"unicode/utf8"
)

// A Look says what may be drawn. Its zero value is plain text that is written once.
type Look struct {
	Width  func() int // of the terminal, in characters; nil: it is none
	Colour bool
}

// Live reports whether what was drawn may be drawn over.
func (l Look) Live() bool { return l.Width != nil }

// plainWidth is how wide pictures are where there is no terminal.
const plainWidth = 80

// Columns is how many characters fit on a line: of a terminal one less than it has, because its last column makes some
// of them wrap.
func (l Look) Columns() int {
	if l.Width == nil {
		return plainWidth
	}
	return max(l.Width()-1, 1)
}

// A Colour is the number of a terminal's SGR colour or weight; the terminal's theme says what it is.
type Colour string

// The colours that are used; inks are for telling things of one sort apart.
const (
	Plain Colour = ""
	Bold  Colour = "1"
	Faint Colour = "2"
	Good  Colour = "32"
	Bad   Colour = "31"
	Note  Colour = "33"
)

var inks = []Colour{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

// A Span is a piece of a line in one colour.
type Span struct {
	Colour Colour
	Text   string
}

// Line joins spans. On a terminal what does not fit is cut off, and it shows that.
func (l Look) Line(spans ...Span) string {
	room, long := l.room(spans)
	var b strings.Builder
	for _, s := range spans {
		text := []rune(s.Text)
		text = text[:min(len(text), room)]
		room -= len(text)
		if l.Colour && s.Colour != Plain && len(text) > 0 {
			b.WriteString("\x1b[" + string(s.Colour) + "m" + string(text) + "\x1b[0m")
		} else {
			b.WriteString(string(text))
		}
	}
	if long {
		b.WriteString("…")
	}
	return b.String()
}

// room returns how many characters of spans are written, and whether that is not all of them.
func (l Look) room(spans []Span) (n int, long bool) {
	for _, s := range spans {
		n += utf8.RuneCountInString(s.Text)
	}
	if l.Live() && n > l.Columns() {
		return l.Columns() - 1, true
	}
	return n, false
}
