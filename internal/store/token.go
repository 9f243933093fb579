package store

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/account"
)

// Tokens are kept by the digest of their text, which is all that a request with one is looked up by. A token that was
// revoked stays as a tombstone, so that the histories which name it can be read.
var tokens = table[account.Token]{
	noun:  corral.ObjectToken,
	name:  "tokens",
	owned: true,
	columns: func(t *account.Token) []column {
		return []column{
			{"id", orNull(&t.ID)},
			{"name", &t.Name},
			{"owner", &t.Owner},
			{"role", &t.Role},
			{"scopes", asJSON(&t.Scopes)},
			{"grants", asJSON(&t.Grants)},
			{"digest", &t.Digest},
			{"state", &t.State},
			{"reason", &t.Reason},
			{"expires_at_ms", at(&t.ExpiresAt)},
			{"created_at_ms", at(&t.CreatedAt)},
			{"updated_at_ms", at(&t.UpdatedAt)},
		}
	},
	about: func(t account.Token) []Subject { return []Subject{{corral.ObjectToken, int64(t.ID)}} },
}

// CreateToken stores k as VALID; its ID, State and times are set here. A Conflict error if its owner has a token of
// that name that is not REVOKED, or if its text was ever another token's.
func (t *Tx) CreateToken(k account.Token) (account.Token, error) {
	err := tokens.free(t, func(other account.Token) error {
		return corral.ErrorAt(corral.Conflict, "name",
			"token %q of %s is there already, with id %d: revoke that first, "+
				"or choose another name", other.Name, other.Owner, other.ID)
	}, "owner = ? and name = ? and state <> 'REVOKED'", k.Owner, k.Name)
	if err == nil {
		err = tokens.free(t, func(account.Token) error {
			return corral.ErrorAt(corral.Conflict, "digest", "a token has it already: make another text")
		}, "digest = ?", k.Digest)
	}
	if err != nil {
		return account.Token{}, err
	}
	k.ID, k.State, k.Reason, k.CreatedAt, k.UpdatedAt = 0, account.TokenValid, "", t.now, t.now
	return tokens.create(t, k, string(k.State))
}

// Token returns the token with this id, REVOKED or not.
func (t *Tx) Token(id account.TokenID) (account.Token, error) { return tokens.one(t, id, "id = ?", id) }

// TokenOf returns the token whose text has the digest, REVOKED and expired ones as well.
func (t *Tx) TokenOf(digest string) (account.Token, error) {
	return tokens.one(t, "of that text", "digest = ?", digest)
}

// Tokens lists tokens; All: REVOKED ones, too.
func (t *Tx) Tokens(f Filter) ([]account.Token, error) {
	var c conditions
	if !f.All {
		c.add("state <> 'REVOKED'")
	}
	if f.Owner != "" {
		c.add("owner = ?", f.Owner)
	}
	c.page(f.Page)
	return tokens.list(t, c)
}

// RevokeToken ends a token for good; one that is REVOKED stays as it is.
func (t *Tx) RevokeToken(id account.TokenID, reason string) (account.Token, error) {
	k, err := t.Token(id)
	if err != nil || k.State == account.TokenRevoked {
		return k, err
	}
	k.State, k.Reason, k.UpdatedAt = account.TokenRevoked, reason, t.after(k.UpdatedAt)
	return k, tokens.save(t, k, corral.Entry{Object: corral.ObjectToken, Of: int64(id), Event: "revoke",
		From: string(account.TokenValid), To: string(k.State), Reason: reason})
}
