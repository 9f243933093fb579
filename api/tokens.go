package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/corral-pilot/corral"
)

// NewToken asks for a token. Its text is made by whoever asks and is not in the request: corrald gets a digest of it,
// so that neither the wire, nor corrald's database, nor the answer to a repeated request ever has it.
type NewToken struct {
	Name      string         `json:"name"`                   // what it is for
	Digest    string         `json:"digest"`                 // sha256:HEX of its text
	Owner     string         `json:"owner,omitempty"`        // empty: who asks
	Role      corral.Role    `json:"role,omitempty"`         // empty: user
	Scopes    []string       `json:"scopes,omitempty"`       // none: all that the role may
	Grants    []corral.Grant `json:"grants,omitempty"`       // what else its owner may
	ExpiresIn corral.Seconds `json:"expires_in_s,omitempty"` // 0: 90 days, or as long as the one that asks
}

// An SSHKey is the key with which corrald logs in at the sites of one owner.
type SSHKey struct {
	PublicKey string `json:"public_key"` // a line for ~/.ssh/authorized_keys
}

// CreateToken makes a token known, by the digest of its text.
func (c *Client) CreateToken(ctx context.Context, n NewToken, key string) (corral.Token, error) {
	return create[corral.Token](ctx, c, "/v1/tokens", key, n)
}

// Tokens lists one's tokens, for administrators everybody's; f.All: revoked ones, too.
func (c *Client) Tokens(ctx context.Context, f Filter) ([]corral.Token, error) {
	return list[corral.Token](ctx, c, "/v1/tokens", f.query())
}

// Token returns a token.
func (c *Client) Token(ctx context.Context, id corral.TokenID) (corral.Token, error) {
	return get[corral.Token](ctx, c, tokenPath(id), nil)
}

// RevokeToken ends a token for good, from the next request on.
func (c *Client) RevokeToken(ctx context.Context, id corral.TokenID) (corral.Token, error) {
	return remove[corral.Token](ctx, c, tokenPath(id), nil)
}

// TokenHistory returns what happened to the token, oldest first.
func (c *Client) TokenHistory(ctx context.Context, id corral.TokenID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, tokenPath(id)+"/history", nil)
}

// SSHKey returns the key with which corrald logs in at one's sites, and has it made if there is none yet.
func (c *Client) SSHKey(ctx context.Context) (SSHKey, error) {
	return change[SSHKey](ctx, c, call{method: http.MethodPut, path: "/v1/ssh-key"})
}

func tokenPath(id corral.TokenID) string { return "/v1/tokens/" + strconv.FormatInt(int64(id), 10) }
