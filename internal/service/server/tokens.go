package server

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

// TokenKeys manages each owner's ssh key.
type TokenKeys interface {
	// PublicKey returns the public half of an owner's key, as a line of authorized_keys, and creates the key if there
	// is none.
	PublicKey(owner string) (string, error)
}

// tokenHandlers answer requests about tokens.
type tokenHandlers struct {
	rest.Resource[corral.Token]
	keys TokenKeys
}

// newTokens returns handlers that store tokens in the adapter's store.
func newTokens(a *rest.Adapter, keys TokenKeys) *tokenHandlers {
	return &tokenHandlers{keys: keys, Resource: rest.Resource[corral.Token]{
		Adapter: a,
		Object:  corral.ObjectToken,
		ID:      func(t corral.Token) int64 { return int64(t.ID) },
		Find:    func(c *rest.Call, tx *store.Tx) (corral.Token, error) { return rest.Numbered(c, tx.Token) },
	}}
}

// routes returns the routes of tokens and of the ssh key.
func (h *tokenHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/tokens", h.Pages((*store.Tx).Tokens), "all", "owner", "after", "limit"),
		rest.Post("/v1/tokens", h.create),
		rest.Get("/v1/tokens/:id", h.Get),
		rest.Delete("/v1/tokens/:id", h.revoke),
		rest.Get("/v1/tokens/:id/history", h.History, "after", "limit"),
		rest.Put("/v1/ssh-key", h.sshKey),
	}
}

// create registers a token. Its creator already has the text, and the token is valid as soon as its row is committed.
func (h *tokenHandlers) create(c *rest.Call) error {
	return rest.Create(h.Adapter, c, func(_ context.Context, in api.NewToken) (rest.Step[corral.Token], error) {
		t, err := admit.ReadToken(c.Caller(), in, time.Now())
		if err != nil {
			return rest.Step[corral.Token]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Token, error) { return admit.Token(tx, c.Caller(), t) })
	})
}

// revoke ends a token. Requests that it has already admitted are still answered: the longest is a wait of a minute.
func (h *tokenHandlers) revoke(c *rest.Call) error {
	return h.Alter(c, func(tx *store.Tx, t corral.Token) (corral.Token, error) {
		return tx.RevokeToken(t.ID, "revocation was requested")
	})
}

// sshKey answers with the public half of the key that corrald uses to log in at the caller's sites.
func (h *tokenHandlers) sshKey(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(context.Context, rest.None) (rest.Step[api.SSHKey], error) {
		line, err := h.keys.PublicKey(c.Actor())
		if err != nil {
			return rest.Step[api.SSHKey]{}, err
		}
		return rest.Only(func(*store.Tx) (api.SSHKey, error) { return api.SSHKey{PublicKey: line}, nil })
	})
}
