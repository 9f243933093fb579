package api

import (
	"strings"

	"github.com/corral-pilot/corral"
)

// CheckKey reports why key, which the user knows as place, cannot be an idempotency key: it goes through a header as it
// is, and an empty one would be none.
func CheckKey(place, key string) error {
	const want = "want 1 to %d printable ASCII characters, without a blank at either end"
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	switch {
	case key == "":
		return corral.ErrorAt(corral.Invalid, place, "is empty: "+want, MaxKey)
	case len(key) > MaxKey || strings.ContainsFunc(key, unprintable) || strings.TrimSpace(key) != key:
		return corral.ErrorAt(corral.Invalid, place, "%+.40q is not a key: "+want, key, MaxKey)
	}
	return nil
}
