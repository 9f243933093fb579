package api

import (
	"strings"

	"github.com/corral-pilot/corral"
)

// CheckKey returns an error if key cannot be an idempotency key; place is the user's name for it. A key is sent
// unchanged in a header, where an empty one would count as none.
func CheckKey(place, key string) error {
	const want = "want 1 to %d printable ASCII characters, without leading or trailing blanks"
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	switch {
	case key == "":
		return corral.ErrorAt(corral.Invalid, place, "is empty: "+want, MaxKey)
	case len(key) > MaxKey || strings.ContainsFunc(key, unprintable) || strings.TrimSpace(key) != key:
		return corral.ErrorAt(corral.Invalid, place, "%+.40q is not a key: "+want, key, MaxKey)
	}
	return nil
}
