package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/corral-pilot/corral"
)

// A NewOwnerState asks for another state of an owner's account.
type NewOwnerState struct {
	Reason string `json:"reason,omitempty"` // for its owner, whose requests are refused with it, and for histories
}

// MaxReason is how long a reason may be, in bytes.
const MaxReason = 500

// Owners lists everybody who has something, with how much; f.All: those whose accounts have ended, too. For
// administrators only, like all that is asked about owners.
func (c *Client) Owners(ctx context.Context, f Filter) ([]corral.Owner, error) {
	return list[corral.Owner](ctx, c, "/v1/owners", f.query())
}

// Owner returns an owner with what they have; of one whose account is being ended also what that waits for.
func (c *Client) Owner(ctx context.Context, name string) (corral.Owner, error) {
	return get[corral.Owner](ctx, c, ownerPath(name), nil)
}

// WaitOwnerEnded waits until the account of an owner has ended.
func (c *Client) WaitOwnerEnded(ctx context.Context, name string, timeout time.Duration) (corral.Owner, error) {
	ended := Until{string(corral.OwnerEnded)}
	return wait(ctx, c, ownerPath(name), waiting[corral.Owner]{ended, timeout, ended.Owner})
}

// SuspendOwner has requests of an owner refused and nothing new asked for, until ResumeOwner. What runs finishes.
func (c *Client) SuspendOwner(ctx context.Context, name string, n NewOwnerState) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "suspend", n)
}

// ResumeOwner lets an owner in again who was suspended. The name of one whose account has ended can be used again then.
func (c *Client) ResumeOwner(ctx context.Context, name string) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "resume", NewOwnerState{})
}

// EndOwner revokes an owner's tokens, and has everything removed that they have at sites and in pools. Records stay.
func (c *Client) EndOwner(ctx context.Context, name string, n NewOwnerState) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "end", n)
}

func (c *Client) moveOwner(ctx context.Context, name, move string, n NewOwnerState) (corral.Owner, error) {
	return send[corral.Owner](ctx, c, call{method: http.MethodPost, path: ownerPath(name) + "/" + move}, n)
}

// OwnerHistory returns what happened to an owner's account, oldest first.
func (c *Client) OwnerHistory(ctx context.Context, name string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, ownerPath(name)+"/history", nil)
}

func ownerPath(name string) string { return "/v1/owners/" + url.PathEscape(name) }
