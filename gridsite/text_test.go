package gridsite

import (
	"testing"
	"unicode/utf8"
)

// A site's texts appear in errors, notes and histories, which people read on terminals.
func TestWordsOfSitesAreHarmless(t *testing.T) {
	t.Parallel()
	const said = "\x1b[31msbatch: error: no budget f\xfcr you\x07\x1b[0m\r\n"
	for name, got := range map[string]string{"LastLine": LastLine([]byte(said)), "OneLine": OneLine(said)} {
		if !utf8.ValidString(got) || got != Printable(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
