package request

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
)

var digestRule = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Token returns the token requested by who at now, without an id; access.CheckMint decides whether who may create it.
// The default owner is the caller, except for corrald's own user: the request is refused, because that user does not
// need a token.
func Token(in api.NewToken, who access.Caller, now time.Time) (corral.Token, error) {
	var k checker
	t := corral.Token{Name: in.Name, Owner: cmp.Or(in.Owner, who.Name), Role: cmp.Or(in.Role, corral.RoleUser),
		Scopes: in.Scopes, Grants: in.Grants, Digest: in.Digest, Parent: who.Token}
	k.name("name", in.Name)
	k.keep(access.CheckName(t.Owner))
	k.invalid(!slices.Contains(corral.Roles, t.Role), "role", "%.80q is none of %s", t.Role, words(corral.Roles))
	k.invalid(!digestRule.MatchString(in.Digest), "digest",
		"want sha256: and the 64 hexadecimal digits of the SHA-256 "+
			"of the token's text")
	for i, s := range in.Scopes {
		k.invalid(!access.IsScope(s), "scopes",
			"%.80q is not a scope: want %s, or one of %s, which may have the suffix "+
				":%s", s, access.ReadScope, words(access.Nouns()), access.ReadScope)
		k.invalid(slices.Contains(in.Scopes[:i], s), "scopes", "%.80q is given twice", s)
	}
	for i, g := range in.Grants {
		k.invalid(!slices.Contains(corral.Grants, g), "grants", "%.80q is none of %s", g, words(corral.Grants))
		k.invalid(slices.Contains(in.Grants[:i], g), "grants", "%.80q is given twice", g)
	}
	return expiring(t, time.Duration(in.ExpiresIn), who.Until, now), k.err
}

// usualLife is the default validity of a token.
const usualLife = 90 * 24 * time.Hour

// expiring returns t with its expiry: now plus life or, if life is 0, now plus the usual life, but not beyond until,
// the expiry of the token that requests it.
func expiring(t corral.Token, life time.Duration, until, now time.Time) corral.Token {
	t.ExpiresAt = now.Add(cmp.Or(life, usualLife)).UTC().Truncate(time.Millisecond)
	if life == 0 && !until.IsZero() && until.Before(t.ExpiresAt) {
		t.ExpiresAt = until
	}
	return t
}
