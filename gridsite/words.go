package gridsite

import (
	"strings"
	"unicode"
)

// Printable is text of a site's without what a terminal would obey. What a site says ends up in errors, notes and
// histories, which people read on terminals.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// LastLine is the last line of what a command said on stderr: its own words for what went wrong.
func LastLine(stderr []byte) string {
	text := strings.TrimSpace(Printable(string(stderr)))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// maxSaid is how much of a site's words OneLine keeps, in bytes.
const maxSaid = 300

// OneLine is the beginning of what a site said, for a note.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(Printable(text)), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}
