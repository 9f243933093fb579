package gridsite

import (
	"strings"
	"unicode"
)

// Printable returns a site's text without the characters that control a terminal. A site's texts appear in errors,
// notes and histories, which people read on terminals.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// LastLine returns the last line of a command's stderr, which usually describes the error.
func LastLine(stderr []byte) string {
	text := strings.TrimSpace(Printable(string(stderr)))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// maxSaid is the maximum length of a site's text in OneLine, in bytes.
const maxSaid = 300

// OneLine returns the beginning of a site's text, for a note.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(Printable(text)), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}
