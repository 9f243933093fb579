package api

import (
	"context"
	"net/url"
	"time"

	"github.com/corral-pilot/corral"
)

// A NewOwnerState requests another state of an owner's account.
type NewOwnerState struct {
	Reason string `json:"reason,omitempty"` // shown to the owner when requests are refused, and in histories
}

// MaxReason is the maximum length of a reason in bytes.
const MaxReason = 500

// Owners lists all owners of objects with their holdings; with f.All, also those whose accounts have ended. Like all
// requests about owners, it is for administrators only.
func (c *Client) Owners(ctx context.Context, f Filter) ([]corral.Owner, error) {
	return list[corral.Owner](ctx, c, "/v1/owners", f.query())
}

// Owner returns an owner with their holdings and, if the account is being ended, the conditions for which its end is
// waiting.
func (c *Client) Owner(ctx context.Context, name string) (corral.Owner, error) {
	return get[corral.Owner](ctx, c, ownerPath(name), nil)
}

// WaitOwnerEnded waits until the account of an owner has ended.
func (c *Client) WaitOwnerEnded(ctx context.Context, name string, timeout time.Duration) (corral.Owner, error) {
	ended := Until{string(corral.OwnerEnded)}
	return wait(ctx, c, ownerPath(name), waiting[corral.Owner]{ended, timeout, ended.Owner})
}

// SuspendOwner refuses an owner's requests and new jobs until ResumeOwner. Running work finishes.
func (c *Client) SuspendOwner(ctx context.Context, name string, n NewOwnerState) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "suspend", n)
}

// ResumeOwner readmits a suspended owner. If the account has ended, its name can be used again.
func (c *Client) ResumeOwner(ctx context.Context, name string) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "resume", NewOwnerState{})
}

// EndOwner revokes an owner's tokens and removes their resources at sites and in pools. Records remain.
func (c *Client) EndOwner(ctx context.Context, name string, n NewOwnerState) (corral.Owner, error) {
	return c.moveOwner(ctx, name, "end", n)
}

// moveOwner posts a verb that changes the state of an owner's account.
func (c *Client) moveOwner(ctx context.Context, name, move string, n NewOwnerState) (corral.Owner, error) {
	return create[corral.Owner](ctx, c, ownerPath(name)+"/"+move, "", n)
}

// OwnerHistory returns what happened to an owner's account, oldest first.
func (c *Client) OwnerHistory(ctx context.Context, name string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, ownerPath(name)+"/history", nil)
}

func ownerPath(name string) string { return "/v1/owners/" + url.PathEscape(name) }
