package access

// This file contains the rules for tokens and their creation. A token cannot create one that may do more than itself or
// is valid for longer: otherwise a stolen token would remain useful beyond its own expiry.

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// ReadScope is the scope for reading all objects.
const ReadScope = "read"

// reading is the suffix of a noun whose objects may only be read.
const reading = ":" + ReadScope

// IsScope reports whether s is a scope: read, a noun that users may request, such as runs, or a noun with the suffix
// :read.
func IsScope(s string) bool {
	noun := strings.TrimSuffix(s, reading)
	return s == ReadScope || slices.Contains(Nouns(), noun)
}

// Nouns returns the sorted nouns of scopes. Resources that only administrators may request have no scope other than
// read.
func Nouns() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for noun := range maps.Keys(kinds) {
			if kinds[noun] != open && !yield(noun) {
				return
			}
		}
	})
}

// inScope reports whether a caller's scopes cover an operation.
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

// covers reports whether a caller's scopes include a scope.
func (c Caller) covers(scope string) bool {
	noun, only := strings.CutSuffix(scope, reading)
	if scope == ReadScope {
		return len(c.Scopes) == 0 || slices.Contains(c.Scopes, ReadScope)
	}
	return c.inScope(Operation{Resource: noun, Reads: only})
}

// CheckName returns an error if a name cannot be that of an owner: owners name folders, and are words in logs.
func CheckName(owner string) error {
	switch {
	case !ownerForm.MatchString(owner):
		return corral.ErrorAt(corral.Invalid, "owner",
			"%.80q is not a name: want 1 to 32 lowercase letters, digits, '_' and '-', the first a letter", owner)
	case slices.Contains(reserved, owner):
		return corral.ErrorAt(corral.Invalid, "owner", "%s is reserved for corrald itself or its own user", owner)
	}
	return nil
}

var ownerForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// CheckMint returns an error if a caller may not create a token, which is complete except for its id.
func CheckMint(who Caller, t corral.Token) error {
	refuse := func(place, format string, args ...any) error {
		return corral.ErrorAt(corral.Forbidden, place, format, args...)
	}
	switch {
	case !who.Sees(t.Owner):
		return refuse("owner", "only administrators may create tokens for other users")
	case t.Role == corral.RoleAdministrator && !who.IsAdministrator():
		return refuse("role", "only administrators may create tokens for administrators")
	case !who.Until.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(who.Until)):
		return refuse("expires_in_s", "it would be valid for longer than the token that requests it")
	case len(who.Scopes) > 0 && len(t.Scopes) == 0:
		return refuse("scopes", "the token that requests it has scopes: name some of them")
	}
	for _, g := range t.Grants {
		if !who.Has(g) {
			return refuse("grants", "only administrators may grant %s", g)
		}
	}
	for _, s := range t.Scopes {
		if !who.covers(s) {
			return refuse("scopes", "%s is more than the token that requests it may do", s)
		}
	}
	return nil
}
