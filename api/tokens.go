package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/corral-pilot/corral"
)

// NewToken requests a token. The caller generates the token's text and sends only a digest of it, so that the text
// never appears on the wire, in corrald's database, or in the answer to a repeated request.
type NewToken struct {
	Name      string         `json:"name"`                   // its purpose
	Digest    string         `json:"digest"`                 // sha256:HEX of its text
	Owner     string         `json:"owner,omitempty"`        // empty: the caller
	Role      corral.Role    `json:"role,omitempty"`         // empty: user
	Scopes    []string       `json:"scopes,omitempty"`       // none: everything that the role permits
	Grants    []corral.Grant `json:"grants,omitempty"`       // further rights of its owner
	ExpiresIn corral.Seconds `json:"expires_in_s,omitempty"` // 0: 90 days, or the caller's own remaining time
}

// An SSHKey is the key with which corrald logs in at the sites of one owner.
type SSHKey struct {
	PublicKey string `json:"public_key"` // a line for ~/.ssh/authorized_keys
}

// CreateToken registers a token by the digest of its text.
func (c *Client) CreateToken(ctx context.Context, n NewToken, key string) (corral.Token, error) {
	return create[corral.Token](ctx, c, "/v1/tokens", key, n)
}

// Tokens lists the caller's tokens or, for administrators, the tokens of all users. If f.All is set, the list includes
// revoked tokens.
func (c *Client) Tokens(ctx context.Context, f Filter) ([]corral.Token, error) {
	return list[corral.Token](ctx, c, "/v1/tokens", f.query())
}

// Token returns a token.
func (c *Client) Token(ctx context.Context, id corral.TokenID) (corral.Token, error) {
	return get[corral.Token](ctx, c, tokenPath(id), nil)
}

// RevokeToken revokes a token permanently, from the next request on.
func (c *Client) RevokeToken(ctx context.Context, id corral.TokenID) (corral.Token, error) {
	return remove[corral.Token](ctx, c, tokenPath(id), nil)
}

// TokenHistory returns what happened to the token, oldest first.
func (c *Client) TokenHistory(ctx context.Context, id corral.TokenID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, tokenPath(id)+"/history", nil)
}

// SSHKey returns the key with which corrald logs in at the caller's sites. It generates the key if it does not exist
// yet.
func (c *Client) SSHKey(ctx context.Context) (SSHKey, error) {
	return change[SSHKey](ctx, c, call{method: http.MethodPut, path: "/v1/ssh-key"})
}

func tokenPath(id corral.TokenID) string { return "/v1/tokens/" + strconv.FormatInt(int64(id), 10) }
