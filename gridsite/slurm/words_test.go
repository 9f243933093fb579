package slurm

import (
	"testing"
	"unicode/utf8"

	"github.com/corral-pilot/corral/gridsite"
)

// A site's texts appear in errors, which people read on terminals.
func TestWordsOfSitesAreHarmless(t *testing.T) {
	t.Parallel()
	const said = "\x1b[31msbatch: error: no budget f\xfcr you\x07\x1b[0m\r\n"
	for name, got := range map[string]string{"refusal": refusal([]byte(said)).Text} {
		if !utf8.ValidString(got) || got != gridsite.Printable(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
