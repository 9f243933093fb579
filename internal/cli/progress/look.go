package progress

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Look specifies what may be drawn. Its zero value means plain text that is written once.
type Look struct {
	Width  func() int // of the terminal, in characters; nil: not a terminal
	Colour bool
}

// Live reports whether lines may be redrawn in place.
func (l Look) Live() bool { return l.Width != nil }

// plainWidth is the width of pictures, in characters, if there is no terminal.
const plainWidth = 80

// Columns returns the number of characters that fit on a line: one less than the terminal's width, because some
// terminals wrap after their last column.
func (l Look) Columns() int {
	if l.Width == nil {
		return plainWidth
	}
	return max(l.Width()-1, 1)
}

// A Colour is the number of an SGR colour or weight of a terminal; the terminal's theme defines its appearance.
type Colour string

// The colours in use; inks distinguish items of the same kind.
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

// Inert returns a text that does not control a terminal: characters that move the cursor, change colours or change the
// direction of writing are replaced with an escape such as \x1b. Line breaks and tabs are kept.
func Inert(text string) string {
	text = strings.ToValidUTF8(text, string(unicode.ReplacementChar))
	if !strings.ContainsFunc(text, steers) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if steers(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// steers reports whether a character controls, or may control, a terminal.
func steers(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine replaces the line breaks and tabs of an inert text.
var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// Line joins spans on one line and makes their texts inert. On a terminal it cuts the line to the width, and marks the
// cut.
func (l Look) Line(spans ...Span) string {
	for i, s := range spans {
		spans[i].Text = oneLine.Replace(Inert(s.Text))
	}
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

// room returns how many characters of spans fit on a line, and whether some do not fit.
func (l Look) room(spans []Span) (n int, long bool) {
	for _, s := range spans {
		n += utf8.RuneCountInString(s.Text)
	}
	if l.Live() && n > l.Columns() {
		return l.Columns() - 1, true
	}
	return n, false
}
