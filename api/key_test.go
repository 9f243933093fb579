package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// badKeys are keys that a header cannot carry unchanged.
var badKeys = []string{"", " ", " k", "k ", "a\nb", "a\tb", "a\x00b", "clé", strings.Repeat("k", MaxKey+1)}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", "a b", "!~", strings.Repeat("k", MaxKey)} {
		if err := CheckKey("--key", key); err != nil {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
	for _, key := range badKeys {
		err := CheckKey("--key", key)
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "--key: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("CheckKey(%q) = %v, want one Invalid sentence", key, err)
		}
	}
}

// TestBadKeyIsNotSent checks keys for which net/http would report a missing answer.
func TestBadKeyIsNotSent(t *testing.T) {
	t.Parallel()
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	for _, key := range badKeys[1:] { // an empty key is replaced by a random one
		_, err := c.CreateGlidein(t.Context(), NewGlidein{Site: "local"}, key)
		if corral.KindOf(err) != corral.Invalid || ProblemOf(err).Place != KeyHeader {
			t.Errorf("key %q: %v, want an Invalid error at %s", key, err, KeyHeader)
		}
	}
}
