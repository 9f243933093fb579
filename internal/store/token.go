package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/corral-pilot/corral"
)

// Tokens are stored with the digest of their text, which is the only key for looking up a request's token. A revoked
// token stays as a tombstone, so that the histories that name it remain readable.
var tokens = table[corral.Token]{
	noun:  corral.ObjectToken,
	name:  "tokens",
	owner: "owner",
	columns: func(t *corral.Token) []column {
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
			{"parent_id", orNull(&t.Parent)},
		}
	},
	about: func(t corral.Token) []Subject { return []Subject{{corral.ObjectToken, int64(t.ID)}} },
}

// FreeToken returns a Conflict error if k's owner has another token of the same name that is not REVOKED, or if another
// token has or had the same text. It returns a Forbidden error if the token with which k is to be created has been
// REVOKED in the meantime.
func (t *Tx) FreeToken(k corral.Token) error {
	err := t.parentIn(k.Parent)
	if err != nil {
		return err
	}
	err = tokens.free(t, func(other corral.Token) error {
		return corral.ErrorAt(corral.Conflict, "name",
			"token %q of %s exists already, with id %d: revoke that one first, "+
				"or choose another name", other.Name, other.Owner, other.ID)
	}, "owner = ? and name = ? and state <> 'REVOKED'", k.Owner, k.Name)
	used := func(corral.Token) error {
		return corral.ErrorAt(corral.Conflict, "digest", "another token has or had it: use another text")
	}
	if err == nil {
		err = tokens.free(t, used, "digest = ?", k.Digest)
	}
	if err == nil && t.revoked.has(k.Digest) {
		err = used(k)
	}
	return err
}

// CreateToken stores k as VALID and sets its ID, State and times. It returns FreeToken's error, if any.
func (t *Tx) CreateToken(k corral.Token) (corral.Token, error) {
	if err := t.FreeToken(k); err != nil {
		return corral.Token{}, err
	}
	k.ID, k.State, k.Reason, k.CreatedAt, k.UpdatedAt = 0, corral.TokenValid, "", t.now, t.now
	return tokens.create(t, k, string(k.State))
}

// parentIn refuses to create a token with a parent that is no longer valid.
func (t *Tx) parentIn(id corral.TokenID) error {
	if id == 0 {
		return nil
	}
	var parent corral.Token
	err := everywhere(t, func(all *Tx) (err error) {
		parent, err = all.Token(id)
		return err
	})
	if err == nil && parent.State != corral.TokenValid {
		err = corral.Errorf(corral.Forbidden, "the token %q was revoked: ask for another", parent.Name)
	}
	return err
}

// Token returns the token with this id, REVOKED or not.
func (t *Tx) Token(id corral.TokenID) (corral.Token, error) {
	return t.listed(tokens.one(t, id, "id = ?", id))
}

// TokenOf returns the token whose text has the digest, even if it is REVOKED or expired, and the reason why its owner
// is not served, or "". It is called before the caller is known.
func (d *DB) TokenOf(ctx context.Context, digest string) (k corral.Token, refusal string, err error) {
	err = d.view(ctx, now(), func(w *work) (err error) {
		all := w.whole().all
		if k, err = all.listed(tokens.one(all, "of that text", "digest = ?", digest)); err == nil {
			refusal, err = all.Refusal(k.Owner)
		}
		return err
	})
	return k, refusal, err
}

// listed returns the effective token: a token in the list of revocations is REVOKED even if its row could not be
// updated.
func (t *Tx) listed(k corral.Token, err error) (corral.Token, error) {
	if err == nil && k.State == corral.TokenValid && t.revoked.has(k.Digest) {
		k.State, k.Reason = corral.TokenRevoked, listedReason
	}
	return k, err
}

// Tokens lists tokens. With All, it includes REVOKED ones.
func (t *Tx) Tokens(f Filter) ([]corral.Token, error) {
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

// RevokeToken permanently ends a token and all tokens created directly or indirectly with it, because a thief may
// have created some. A token that is already REVOKED stays unchanged.
func (t *Tx) RevokeToken(id corral.TokenID, reason string) (corral.Token, error) {
	k, err := tokens.one(t, id, "id = ?", id)
	if err != nil {
		return k, err
	}
	if k, err = t.revoke(k, reason); err != nil {
		return k, err
	}
	return k, everywhere(t, func(all *Tx) error {
		c := where(descendants, id)
		c.add("state = 'VALID'")
		made, err := tokens.list(all, c)
		for _, child := range made {
			if err == nil {
				of := &Tx{work: t.work, asker: child.Owner, everyone: true}
				_, err = of.revoke(child, fmt.Sprintf("it was created directly or indirectly with token %d (%s), "+
					"which was revoked: %s", k.ID, k.Name, reason))
			}
		}
		return err
	})
}

// descendants matches the tokens created directly or indirectly with a given token.
const descendants = `id in (
	with recursive made(id) as (
		select id from tokens where parent_id = ?
		union select tokens.id from tokens join made on parent_id = made.id
	)
	select id from made)`

// revoke ends one token and adds it to the list beside the database.
func (t *Tx) revoke(k corral.Token, reason string) (corral.Token, error) {
	if k.State == corral.TokenRevoked {
		return k, nil
	}
	t.list(k.Digest, strconv.FormatInt(int64(k.ID), 10))
	k.State, k.Reason, k.UpdatedAt = corral.TokenRevoked, reason, t.after(k.UpdatedAt)
	return k, tokens.save(t, k, corral.Entry{Object: corral.ObjectToken, Of: int64(k.ID), Event: "revoke",
		From: string(corral.TokenValid), To: string(k.State), Reason: reason})
}
