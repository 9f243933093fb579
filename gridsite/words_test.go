package gridsite

import (
	"testing"
	"unicode/utf8"
)

// What a site says ends up in errors, notes and histories, which people read on terminals.
func TestWordsOfSitesObeyNobody(t *testing.T) {
	t.Parallel()
	const said = "\x1b[31msbatch: error: no budget f\xfcr you\x07\x1b[0m\r\n"
	words := map[string]string{
		"lastLine": lastLine([]byte(said)), "lineWith": lineWith([]byte(said), "budget"), "oneLine": oneLine(said),
		"refusal": refusal([]byte(said)).Text, "slurmRefusal": slurmRefusal([]byte(said)).Text,
	}
	for name, got := range words {
		if !utf8.ValidString(got) || got != printable(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
