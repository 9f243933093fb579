package access

// What a token may be, and who may make which. A token never makes one that may do more than itself, or that lives
// longer: a stolen one would otherwise outlive its own end.

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// ReadScope is the scope of all reading.
const ReadScope = "read"

// reading stands behind a noun whose objects may only be read.
const reading = ":" + ReadScope

// IsScope reports whether s is a scope: read, a noun that users may ask for, such as runs, or one with :read.
func IsScope(s string) bool {
	noun := strings.TrimSuffix(s, reading)
	return s == ReadScope || slices.Contains(Nouns(), noun)
}

// Nouns lists what scopes may name, in order. What only administrators may ask for has no scope but read.
func Nouns() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for noun := range maps.Keys(kinds) {
			if kinds[noun] != open && !yield(noun) {
				return
			}
		}
	})
}

// inScope reports whether the scopes of a caller cover an operation.
func (c Caller) inScope(what Operation) bool {
	if len(c.Scopes) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Scopes, func(s string) bool {
		noun, only := strings.CutSuffix(s, reading)
		switch {
		case s == ReadScope:
			return what.Reads
		case noun != what.Resource:
			return false
		}
		return what.Reads || !only
	})
}

// covers reports whether the scopes of a caller include a scope.
func (c Caller) covers(scope string) bool {
	noun, only := strings.CutSuffix(scope, reading)
	if scope == ReadScope {
		return len(c.Scopes) == 0 || slices.Contains(c.Scopes, ReadScope)
	}
	return c.inScope(Operation{Resource: noun, Reads: only})
}

// CheckName reports why nobody may be called so: owners are names of folders, and words in logs.
func CheckName(owner string) error {
	switch {
	case !ownerForm.MatchString(owner):
		return corral.ErrorAt(corral.Invalid, "owner",
			"%.80q is not a name: want 1 to 32 small letters, digits, '_' and '-', the first a letter", owner)
	case slices.Contains(reserved, owner):
		return corral.ErrorAt(corral.Invalid, "owner", "%s is what corrald calls itself, or its own user", owner)
	}
	return nil
}

var ownerForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// CheckMint reports why a caller may not make a token, which is complete but for its id.
func CheckMint(who Caller, t corral.Token) error {
	refuse := func(place, format string, args ...any) error {
		return corral.ErrorAt(corral.Forbidden, place, format, args...)
	}
	switch {
	case !who.Sees(t.Owner):
		return refuse("owner", "only administrators make tokens of others")
	case t.Role == corral.RoleAdministrator && !who.IsAdministrator():
		return refuse("role", "only administrators make tokens of administrators")
	case !who.Until.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(who.Until)):
		return refuse("expires_in_s", "it would be good for longer than the token that asks for it")
	case len(who.Scopes) > 0 && len(t.Scopes) == 0:
		return refuse("scopes", "the token that asks has scopes: name some of them")
	}
	for _, g := range t.Grants {
		if !who.Has(g) {
			return refuse("grants", "only administrators grant %s", g)
		}
	}
	for _, s := range t.Scopes {
		if !who.covers(s) {
			return refuse("scopes", "%s is more than the token that asks may do", s)
		}
	}
	return nil
}
