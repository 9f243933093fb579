package api_test

import (
	"testing"

	"github.com/corral-pilot/corral/api"
)

// The texts of tokens are all different and have the form of a token. The digest that is stored does not contain the
// text.
func TestTokenTexts(t *testing.T) {
	t.Parallel()
	text := api.NewTokenText()
	if !api.IsToken(text) || text == api.NewTokenText() {
		t.Errorf("the token %q", text)
	}
	for _, no := range []string{"", text[1:], text + "x", text[:len(text)-1] + "!", " " + text} {
		if api.IsToken(no) {
			t.Errorf("%q is accepted as a token", no)
		}
	}
	const abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of FIPS 180-2
	if got := api.TokenDigest("abc"); got != abc {
		t.Errorf("digest of abc: %s", got)
	}
}
